//! `cargo xtask bill [--out FILE]`: the software bill of materials, in CycloneDX's JSON.
//!
//! It has every crate that is linked into consort's program and libraries, with its licence.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::command::{host, root};

/// The packages of the libraries that are installed.
pub(crate) const LIBRARIES: [&str; 3] =
    ["consort-libjack", "consort-jackserver", "consort-jacknet"];

/// The packages of all that is installed.
pub(crate) const INSTALLED: [&str; 4] = ["consort", LIBRARIES[0], LIBRARIES[1], LIBRARIES[2]];

/// Prints the bill, or writes it to a file.
///
/// # Errors
/// If cargo does not know the dependencies, or one of them states no licence.
pub fn run(arguments: &[String]) -> Result<()> {
    let text = format!("{:#}\n", bill(&metadata()?)?);
    match arguments {
        [] => print!("{text}"),
        [option, file] if option == "--out" => {
            fs::write(file, text).with_context(|| format!("cannot write {file}"))?;
        }
        _ => bail!("say where to, or nothing: bill [--out FILE]"),
    }
    Ok(())
}

/// What cargo knows of the workspace and of all that it builds on, for this platform.
pub(crate) fn metadata() -> Result<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(root())
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &host()?])
        .output()
        .context("cannot run cargo")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("cargo's metadata are not JSON")
}

/// The packages that are linked into those with the names `installed`, except our own.
pub(crate) fn linked<'a>(metadata: &'a Value, installed: &[&str]) -> Result<Vec<&'a Value>> {
    let packages = by_id(&metadata["packages"])?;
    let nodes = by_id(&metadata["resolve"]["nodes"])?;
    let installed = packages.iter().filter(|(_, package)| {
        package["source"].is_null() && installed.iter().any(|name| package["name"] == *name)
    });
    let (mut linked, mut open) =
        (BTreeSet::new(), installed.map(|(id, _)| *id).collect::<Vec<&str>>());
    while let Some(id) = open.pop() {
        let package = packages.get(id).with_context(|| format!("{id} is unknown"))?;
        if !is_linked(package) || !linked.insert(id) {
            continue;
        }
        let dependencies = nodes.get(id).and_then(|node| node["deps"].as_array());
        let normal = dependencies.into_iter().flatten().filter(|dependency| is_normal(dependency));
        open.extend(normal.filter_map(|dependency| dependency["pkg"].as_str()));
    }
    let linked = linked.into_iter().filter_map(|id| packages.get(id).copied());
    Ok(linked.filter(|package| !package["source"].is_null()).collect())
}

fn bill(metadata: &Value) -> Result<Value> {
    let linked = linked(metadata, &INSTALLED)?.into_iter();
    let components = linked.map(component).collect::<Result<Vec<Value>>>()?;
    let of = json!({ "type": "application", "name": "consort", "version": version() });
    Ok(json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": { "component": of }, "components": components,
    }))
}

/// The objects of a list, by their ids.
fn by_id(list: &Value) -> Result<BTreeMap<&str, &Value>> {
    let list = list.as_array().context("cargo's metadata have no such list")?;
    Ok(list.iter().filter_map(|entry| Some((entry["id"].as_str()?, entry))).collect())
}

/// Whether a package becomes part of what it is a dependency of; macros only run at build time.
fn is_linked(package: &Value) -> bool {
    let targets = package["targets"].as_array().into_iter().flatten();
    !targets.flat_map(|target| target["kind"].as_array()).flatten().any(|kind| kind == "proc-macro")
}

/// Whether a dependency is one of the code, and not of its tests or its build script.
fn is_normal(dependency: &Value) -> bool {
    let kinds = dependency["dep_kinds"].as_array();
    kinds.into_iter().flatten().any(|kind| kind["kind"].is_null())
}

fn component(package: &Value) -> Result<Value> {
    let text = |key: &str| {
        let text = package[key].as_str();
        text.with_context(|| format!("{} {} states no {key}", package["name"], package["version"]))
    };
    let (name, version) = (text("name")?, text("version")?);
    // Older packages separate alternatives by a slash.
    let licence = text("license")?.replace('/', " OR ").replace("  ", " ");
    Ok(json!({
        "type": "library", "name": name, "version": version,
        "purl": format!("pkg:cargo/{name}@{version}"),
        "licenses": [{ "expression": licence }],
    }))
}

/// The version of the workspace.
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names in the bill of the workspace `consort`, which depends on `linked` and the macro
    /// `derive`; those depend on `below` and `parser`.
    fn names(change: impl FnOnce(&mut Value)) -> Result<Vec<String>> {
        let package = |id: &str, kind: &str| {
            json!({
                "id": id, "name": id, "version": "1.0.0", "license": "MIT/Apache-2.0",
                "source": if id == "consort" { Value::Null } else { json!("registry") },
                "targets": [{ "kind": [kind] }],
            })
        };
        let node = |id: &str, on: &[&str]| {
            let on = on.iter().map(|id| json!({ "pkg": id, "dep_kinds": [{ "kind": null }] }));
            json!({ "id": id, "deps": on.collect::<Vec<Value>>() })
        };
        let mut metadata = json!({
            "packages": [
                package("consort", "lib"), package("linked", "lib"), package("below", "lib"),
                package("derive", "proc-macro"), package("parser", "lib"),
                package("tester", "lib"),
            ],
            "resolve": { "nodes": [
                node("consort", &["linked", "derive", "tester"]), node("linked", &["below"]),
                node("derive", &["parser"]), node("below", &[]), node("parser", &[]),
            ]},
        });
        metadata["resolve"]["nodes"][0]["deps"][2]["dep_kinds"][0]["kind"] = json!("dev");
        change(&mut metadata);
        let bill = bill(&metadata)?;
        let components = bill["components"].as_array().into_iter().flatten();
        Ok(components.filter_map(|component| Some(component["name"].as_str()?.into())).collect())
    }

    #[test]
    fn the_bill_has_what_is_linked_and_no_tools() {
        assert_eq!(names(|_| ()).expect("complete"), ["below", "linked"]);
    }

    #[test]
    fn a_crate_without_a_licence_is_an_error() {
        let error = names(|metadata| metadata["packages"][1]["license"] = Value::Null);
        assert!(error.unwrap_err().to_string().contains("states no license"));
    }

    #[test]
    fn older_spellings_of_licences_become_expressions() {
        let package = json!({ "name": "a", "version": "1.0.0", "license": "MIT/Apache-2.0" });
        let expression =
            component(&package).expect("complete")["licenses"][0]["expression"].clone();
        assert_eq!(expression, "MIT OR Apache-2.0");
    }
}

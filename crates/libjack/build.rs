//! Sets the name under which programs are linked with the shared object.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libjack.so.0");
    // Never unloaded: its threads must not outlive their code.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}

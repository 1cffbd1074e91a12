//! Sets the name under which programs and plug-ins are linked with the shared object.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libjackserver.so.0");
    // Never unloaded, like libjack, which it contains.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}

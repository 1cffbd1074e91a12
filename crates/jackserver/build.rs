//! Gives the shared object the name under which programs and plug-ins were linked with it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libjackserver.so.0");
    // As libjack, all of which it holds.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}

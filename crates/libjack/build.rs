//! Gives the shared object the name under which programs were linked with it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libjack.so.0");
    // A program that has loaded it keeps it: its handler of write faults must not outlive its code.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}

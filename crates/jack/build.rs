//! Gives the shared object the name under which programs were linked with it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Not for shared objects alone: cargo would pass that on to every shared object that this library becomes a part
    // of. Whatever else of this package is linked has no use for the name.
    println!("cargo:rustc-link-arg=-Wl,-soname,libjack.so.0");
    // A program that has loaded it keeps it: its handler of write faults must not outlive its code.
    println!("cargo:rustc-link-arg=-Wl,-z,nodelete");
}

//! Gives the shared object the name under which programs were linked with it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg=-Wl,-soname,libjacknet.so.0");
}

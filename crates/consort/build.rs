//! Has the linker lay the code of real-time threads together.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=realtime.ld");
    println!("cargo:rustc-link-arg-bins=-Wl,-T,{}/realtime.ld", env!("CARGO_MANIFEST_DIR"));
}

//! The two variadic functions on i386, where all arguments are on the stack.
//!
//! There, the memory of the arguments is the called function's own, which it may write to. A Rust
//! function with as many fixed arguments as there can be variadic ones would own what belongs to
//! its caller, if that passed fewer. So what C calls copies the arguments, those that were not
//! passed too, and calls the Rust function with the copies: of these, it reads only those that the
//! options announce.

use std::arch::naked_asm;

/// See [`jack_client_open`](crate::client::jack_client_open), which has five arguments.
///
/// # Safety
/// As there.
#[unsafe(naked)]
#[unsafe(export_name = "jack_client_open")]
pub unsafe extern "C" fn open() {
    naked_asm!(
        // With five arguments and this, the stack is aligned to 16 bytes at the call.
        "sub esp, 8",
        // The last argument; each push brings the one before it to the same distance.
        "push dword ptr [esp + 28]",
        "push dword ptr [esp + 28]",
        "push dword ptr [esp + 28]",
        "push dword ptr [esp + 28]",
        "push dword ptr [esp + 28]",
        "call {open}",
        "add esp, 28",
        "ret",
        open = sym crate::client::jack_client_open,
    )
}

/// See [`jack_internal_client_load`](crate::internal::jack_internal_client_load), which has six.
///
/// # Safety
/// As there.
#[unsafe(naked)]
#[unsafe(export_name = "jack_internal_client_load")]
pub unsafe extern "C" fn load() {
    naked_asm!(
        "sub esp, 4",
        "push dword ptr [esp + 28]",
        "push dword ptr [esp + 28]",
        "push dword ptr [esp + 28]",
        "push dword ptr [esp + 28]",
        "push dword ptr [esp + 28]",
        "push dword ptr [esp + 28]",
        "call {load}",
        "add esp, 28",
        "ret",
        load = sym crate::internal::jack_internal_client_load,
    )
}

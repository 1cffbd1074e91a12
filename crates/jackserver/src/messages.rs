//! `jack_error`, `jack_info` and `jack_log`: messages of plug-ins, with the arguments of `printf`.
//!
//! Stable Rust cannot define a variadic function. Each of these is therefore a few instructions
//! that lay the arguments out as the platform's `va_list`, according to its calling convention, and
//! continue in Rust.

use std::arch::naked_asm;
use std::ffi::{CStr, c_char, c_int, c_void};

unsafe extern "C" {
    /// Takes a `va_list` as each of the platforms below passes it: by address or by value.
    fn vsnprintf(
        buffer: *mut c_char,
        bytes: usize,
        format: *const c_char,
        arguments: *mut c_void,
    ) -> c_int;
}

/// Longer messages are cut.
const MESSAGE_BYTES: usize = 2048;

/// # Safety
/// `format` is a format of `printf`, and `arguments` a `va_list` of what it names.
unsafe fn report(
    format: *const c_char,
    arguments: *mut c_void,
    pass_on: impl FnOnce(std::fmt::Arguments<'_>),
) {
    let mut buffer = [0_u8; MESSAGE_BYTES];
    if format.is_null() {
        return;
    }
    // SAFETY: the buffer has `MESSAGE_BYTES` bytes; the rest is the caller's promise.
    let printed = unsafe { vsnprintf(buffer.as_mut_ptr().cast(), buffer.len(), format, arguments) };
    if let (0.., Ok(text)) = (printed, CStr::from_bytes_until_nul(&buffer)) {
        pass_on(format_args!("{}", text.to_string_lossy().trim_end_matches('\n')));
    }
}

unsafe extern "C" fn report_error(format: *const c_char, arguments: *mut c_void) {
    // SAFETY: what `jack_error` was called with.
    unsafe { report(format, arguments, jack::messages::error) };
}

unsafe extern "C" fn report_info(format: *const c_char, arguments: *mut c_void) {
    // SAFETY: what `jack_info` was called with.
    unsafe { report(format, arguments, jack::messages::info) };
}

/// Prints debug messages, only when they are enabled.
unsafe extern "C" fn report_log(format: *const c_char, arguments: *mut c_void) {
    if std::env::var_os("JACK_CLIENT_DEBUG").is_some_and(|value| value == "on") {
        // SAFETY: what `jack_log` was called with.
        unsafe { report(format, arguments, jack::messages::info) };
    }
}

/// Defines a variadic function that calls `$target` with its format and a `va_list` of the rest.
macro_rules! variadic {
    ($(#[$documentation:meta])* $name:ident, $target:ident) => {
        $(#[$documentation])*
        ///
        /// # Safety
        /// The first argument is null or a format of `printf`, and the others are what it names.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            // System V ABI, AMD64: a register save area of six integer and eight vector registers,
            // of which those of the format are counted as taken, and the list {gp_offset,
            // fp_offset, overflow area, save area}.
            #[cfg(target_arch = "x86_64")]
            naked_asm!(
                "sub rsp, 216",
                "mov [rsp + 40], rsi",
                "mov [rsp + 48], rdx",
                "mov [rsp + 56], rcx",
                "mov [rsp + 64], r8",
                "mov [rsp + 72], r9",
                "test al, al",
                "je 2f",
                "movaps [rsp + 80], xmm0",
                "movaps [rsp + 96], xmm1",
                "movaps [rsp + 112], xmm2",
                "movaps [rsp + 128], xmm3",
                "movaps [rsp + 144], xmm4",
                "movaps [rsp + 160], xmm5",
                "movaps [rsp + 176], xmm6",
                "movaps [rsp + 192], xmm7",
                "2:",
                "mov dword ptr [rsp + 8], 8",
                "mov dword ptr [rsp + 12], 48",
                "lea rax, [rsp + 224]",
                "mov [rsp + 16], rax",
                "lea rax, [rsp + 32]",
                "mov [rsp + 24], rax",
                "lea rsi, [rsp + 8]",
                "call {target}",
                "add rsp, 216",
                "ret",
                target = sym $target,
            );
            // System V ABI, i386: all arguments are on the stack, and the list is the address of
            // the next one. With both arguments, the stack is aligned to 16 bytes at the call.
            #[cfg(target_arch = "x86")]
            naked_asm!(
                "lea eax, [esp + 8]",
                "sub esp, 4",
                "push eax",
                "push dword ptr [esp + 12]",
                "call {target}",
                "add esp, 12",
                "ret",
                target = sym $target,
            );
            // AAPCS64: the list {stack, gr_top, vr_top, gr_offs, vr_offs}, whose offsets are
            // negative and end at 0.
            #[cfg(target_arch = "aarch64")]
            naked_asm!(
                "stp x29, x30, [sp, #-240]!",
                "mov x29, sp",
                "stp x1, x2, [sp, #56]",
                "stp x3, x4, [sp, #72]",
                "stp x5, x6, [sp, #88]",
                "str x7, [sp, #104]",
                "stp q0, q1, [sp, #112]",
                "stp q2, q3, [sp, #144]",
                "stp q4, q5, [sp, #176]",
                "stp q6, q7, [sp, #208]",
                "add x9, sp, #240",
                "str x9, [sp, #16]",
                "add x10, sp, #112",
                "stp x10, x9, [sp, #24]",
                "mov w10, #-56",
                "mov w11, #-128",
                "stp w10, w11, [sp, #40]",
                "add x1, sp, #16",
                "bl {target}",
                "ldp x29, x30, [sp], #240",
                "ret",
                target = sym $target,
            );
            // RISC-V: the list is the address of the next argument; those in registers lie below
            // those on the stack.
            #[cfg(target_arch = "riscv64")]
            naked_asm!(
                "addi sp, sp, -80",
                "sd ra, 8(sp)",
                "sd a1, 24(sp)",
                "sd a2, 32(sp)",
                "sd a3, 40(sp)",
                "sd a4, 48(sp)",
                "sd a5, 56(sp)",
                "sd a6, 64(sp)",
                "sd a7, 72(sp)",
                "addi a1, sp, 24",
                "call {target}",
                "ld ra, 8(sp)",
                "addi sp, sp, 80",
                "ret",
                target = sym $target,
            );
        }
    };
}

variadic! {
    /// Reports an error to the function set with `jack_set_error_function`.
    jack_error, report_error
}
variadic! {
    /// Reports information to the function set with `jack_set_info_function`.
    jack_info, report_info
}
variadic! {
    /// Like [`jack_info`], if `JACK_CLIENT_DEBUG` is `on`.
    jack_log, report_log
}

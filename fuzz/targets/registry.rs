//! Any bytes in the place of the registry: it is refused, or every read stays within its memory and
//! ends.
#![no_main]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use rt::shm::{Registry, RegistryHeader};

#[path = "../../crates/client/src/registry_view.rs"]
#[expect(
    dead_code,
    reason = "the client's own reader, of which not every getter is interesting here"
)]
mod registry_view;

use registry_view::RegistryView;

const PAGE_BYTES: usize = 4096;
/// Room for the header and some tens of entries.
const LARGEST_BYTES: usize = 64 * 1024;
/// Bytes of the input that fill the start of the first page, with its magic number and shape.
const HEADER_BYTES: usize = 64;

/// Memory of exactly this size, so that the sanitizer sees the first byte that is read beyond it.
struct Memory {
    base: NonNull<u8>,
    layout: Layout,
}

impl Memory {
    fn filled(bytes: usize, header: &[u8], body: &[u8]) -> Self {
        let layout = Layout::from_size_align(bytes, PAGE_BYTES).expect("a power of two");
        // SAFETY: the layout is not empty.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) }).expect("memory");
        // SAFETY: just allocated, initialized with zeroes, and not used anywhere else.
        let memory = unsafe { std::slice::from_raw_parts_mut(base.as_ptr(), bytes) };
        memory.iter_mut().zip(header).for_each(|(place, byte)| *place = *byte);
        if let Some(entries) = memory.get_mut(size_of::<RegistryHeader>()..) {
            entries.iter_mut().zip(body.iter().cycle()).for_each(|(place, byte)| *place = *byte);
        }
        Self { base, layout }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; the registry over it is gone.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((size, input)) = input.split_first_chunk() else { return };
    let bytes = 1 + usize::from(u16::from_le_bytes(*size)) % LARGEST_BYTES;
    let (header, body) = input.split_at(input.len().min(HEADER_BYTES));
    let memory = Memory::filled(bytes, header, body);
    // SAFETY: page-aligned, `bytes` long, and alive until the end of this block.
    let Some(registry) = (unsafe { Registry::open(memory.base, bytes) }) else { return };
    let shape = registry.shape();
    assert!(shape.bytes() <= bytes);
    let view = RegistryView::new(&registry);
    let _ = view.changes();
    for port in [0, 1, shape.ports, shape.ports.wrapping_add(1), u32::MAX]
        .into_iter()
        .chain(1..=shape.ports)
    {
        if port == 0 || port > shape.ports {
            assert!(view.port(port).is_none() && registry.port(port).is_none());
        }
        let _ = (view.port(port), view.port_aliases(port), view.port_latency(port, true));
        let _ = (view.port_flags(port), view.port_type(port), view.port_name_ptr(port));
        assert!(view.connections(port).len() <= shape.connections as usize);
    }
    assert!(view.ports().count() <= shape.ports as usize);
    assert!(view.clients().count() <= shape.clients as usize);
    assert!(
        registry.client(0).is_none() && registry.client(shape.clients.wrapping_add(1)).is_none()
    );
    assert!(registry.connection(shape.connections).is_none());
    let _ = view.port_by_name("system:capture_1");
});

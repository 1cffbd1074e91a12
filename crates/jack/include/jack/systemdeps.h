/* consort: what the other headers need from the platform (Linux, with GCC or Clang).
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef CONSORT_JACK_SYSTEMDEPS_H
#define CONSORT_JACK_SYSTEMDEPS_H

#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A struct whose layout libraries agreed on long ago stands between these two. It has no padding between its
 * members, except on the processors for which the ABI has always kept natural alignment. A program that brings
 * its own definition keeps it. */
#if defined(__arm__) || defined(__aarch64__) || defined(__mips__) || defined(__ppc__) || defined(__powerpc__)
#undef PRE_PACKED_STRUCTURE
#undef POST_PACKED_STRUCTURE
#define PRE_PACKED_STRUCTURE
#define POST_PACKED_STRUCTURE
#elif !defined(POST_PACKED_STRUCTURE)
#define PRE_PACKED_STRUCTURE
#define POST_PACKED_STRUCTURE __attribute__((__packed__))
#endif

/* Marks the entry points of an internal client (jack_initialize, jack_finish). */
#define JACK_LIB_EXPORT __attribute__((visibility("default")))

/** A thread of the operating system, as the thread functions name it. */
typedef pthread_t jack_native_thread_t;

#endif

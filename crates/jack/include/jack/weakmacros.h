/* consort: how the other headers mark their functions. Include nothing from here directly.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef CONSORT_JACK_WEAKMACROS_H
#define CONSORT_JACK_WEAKMACROS_H

/** The attribute of a function that the linker may leave at address 0 when no library has it. */
#ifndef WEAK_ATTRIBUTE
#define WEAK_ATTRIBUTE __weak__
#endif

/** Late additions to the interface: always weak, so that a program can ask `if (function)`. */
#ifndef JACK_WEAK_EXPORT
#define JACK_WEAK_EXPORT __attribute__((WEAK_ATTRIBUTE))
#endif

/** Everything else: weak only for programs that include <jack/weakjack.h> first. */
#ifndef JACK_OPTIONAL_WEAK_EXPORT
#define JACK_OPTIONAL_WEAK_EXPORT
#endif

/** As JACK_OPTIONAL_WEAK_EXPORT, for functions that new programs should not call. */
#ifndef JACK_OPTIONAL_WEAK_DEPRECATED_EXPORT
#define JACK_OPTIONAL_WEAK_DEPRECATED_EXPORT __attribute__((__deprecated__))
#endif

#endif

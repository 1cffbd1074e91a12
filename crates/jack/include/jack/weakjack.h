/* consort: include this before any other JACK header to make every function weak. The program then starts without
 * libjack and has to test one function's address before it calls any.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef CONSORT_JACK_WEAKJACK_H
#define CONSORT_JACK_WEAKJACK_H

#ifndef WEAK_ATTRIBUTE
#define WEAK_ATTRIBUTE __weak__
#endif
#ifndef JACK_OPTIONAL_WEAK_EXPORT
#define JACK_OPTIONAL_WEAK_EXPORT __attribute__((WEAK_ATTRIBUTE))
#endif
#ifndef JACK_OPTIONAL_WEAK_DEPRECATED_EXPORT
#define JACK_OPTIONAL_WEAK_DEPRECATED_EXPORT __attribute__((WEAK_ATTRIBUTE, __deprecated__))
#endif

#endif

/* consort: the singly linked list that internal clients and control programs get their parameters in. A null
 * pointer is the empty list. The elements' data is never released by these functions. Not for the process thread.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef CONSORT_JACK_JSLIST_H
#define CONSORT_JACK_JSLIST_H

#include <stdlib.h>

#include <jack/systemdeps.h>

/** A list element, and with it the list that begins there. */
typedef struct _JSList JSList;
struct _JSList {
    void *data;
    JSList *next;
};

/** Less than, equal to or greater than 0 as `a` sorts before, with or after `b`. */
typedef int (*JCompareFunc)(void *a, void *b);

/** The list behind the first element. */
#define jack_slist_next(list) ((list) ? ((JSList *)(list))->next : NULL)

/** A list with `data` in front; null when there is no memory. */
static inline JSList *jack_slist_prepend(JSList *list, void *data)
{
    JSList *first = (JSList *)malloc(sizeof *first);
    if (first) {
        first->data = data;
        first->next = list;
    }
    return first;
}

/** A list of one element without data; null when there is no memory. */
static inline JSList *jack_slist_alloc(void)
{
    return jack_slist_prepend(NULL, NULL);
}

/** The last element. */
static inline JSList *jack_slist_last(JSList *list)
{
    while (list && list->next)
        list = list->next;
    return list;
}

/** The list with `data` at its end; unchanged when there is no memory. */
static inline JSList *jack_slist_append(JSList *list, void *data)
{
    JSList **end = &list;
    while (*end)
        end = &(*end)->next;
    *end = jack_slist_prepend(NULL, data);
    return list;
}

/** The list without the element `link`, which becomes a list of its own. */
static inline JSList *jack_slist_remove_link(JSList *list, JSList *link)
{
    JSList **at = &list;
    while (*at && *at != link)
        at = &(*at)->next;
    if (*at) {
        *at = link->next;
        link->next = NULL;
    }
    return list;
}

/** Releases one element. */
static inline void jack_slist_free_1(JSList *element)
{
    free(element);
}

/** Releases all elements. */
static inline void jack_slist_free(JSList *list)
{
    while (list) {
        JSList *rest = list->next;
        free(list);
        list = rest;
    }
}

/** The element that holds `data`; null when none does. */
static inline JSList *jack_slist_find(JSList *list, void *data)
{
    while (list && list->data != data)
        list = list->next;
    return list;
}

/** The list without the first element that holds `data`. */
static inline JSList *jack_slist_remove(JSList *list, void *data)
{
    JSList *found = jack_slist_find(list, data);
    list = jack_slist_remove_link(list, found);
    free(found);
    return list;
}

/** Number of elements. */
static inline unsigned int jack_slist_length(JSList *list)
{
    unsigned int length = 0;
    for (; list; list = list->next)
        length += 1;
    return length;
}

/** New elements with the same data; as far as there was memory. */
static inline JSList *jack_slist_copy(JSList *list)
{
    JSList *copy = NULL;
    JSList **end = &copy;
    for (; list; list = list->next) {
        *end = jack_slist_prepend(NULL, list->data);
        if (!*end)
            break;
        end = &(*end)->next;
    }
    return copy;
}

/** The list in order. Equal elements keep theirs. */
static inline JSList *jack_slist_sort(JSList *list, JCompareFunc compare)
{
    JSList *sorted = NULL;
    while (list) {
        JSList *element = list;
        JSList **at = &sorted;
        list = list->next;
        while (*at && compare((*at)->data, element->data) <= 0)
            at = &(*at)->next;
        element->next = *at;
        *at = element;
    }
    return sorted;
}

#endif

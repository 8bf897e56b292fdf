/*
 * sys/queue.h: lists whose links lie in the elements, for a C library without
 * this header; see configure.ac.  Those macros of queue(3) that are used here,
 * with its meanings.
 *
 * A list's links are the address of the next element and of the pointer that
 * points to this one, so that an element is removed without its head; a tail
 * queue's head keeps the address of the last such pointer, too.  Singly
 * linked ones have only the first.
 */
#ifndef COMPAT_SYS_QUEUE_H
#define COMPAT_SYS_QUEUE_H

#include <stddef.h>

/* ---- singly linked ------------------------------------------------------ */

#define SLIST_HEAD(name, type)	struct name { struct type *first; }
#define SLIST_ENTRY(type)	struct { struct type *next; }
#define SLIST_HEAD_INITIALIZER(head)	{ NULL }
#define SLIST_FIRST(head)	((head)->first)
#define SLIST_INSERT_HEAD(head, e, field) do {				\
	(e)->field.next = (head)->first;				\
	(head)->first = (e);						\
} while (0)
#define SLIST_REMOVE_HEAD(head, field)					\
	((void)((head)->first = (head)->first->field.next))

/* ---- singly linked, with a tail ----------------------------------------- */

#define STAILQ_HEAD(name, type)						\
	struct name { struct type *first; struct type **last; }
#define STAILQ_ENTRY(type)	struct { struct type *next; }
#define STAILQ_HEAD_INITIALIZER(head)	{ NULL, &(head).first }
#define STAILQ_INIT(head) do {						\
	(head)->first = NULL;						\
	(head)->last = &(head)->first;					\
} while (0)
#define STAILQ_FIRST(head)	((head)->first)
#define STAILQ_EMPTY(head)	((head)->first == NULL)
#define STAILQ_FOREACH(e, head, field)					\
	for ((e) = (head)->first; (e) != NULL; (e) = (e)->field.next)
#define STAILQ_INSERT_TAIL(head, e, field) do {				\
	(e)->field.next = NULL;						\
	*(head)->last = (e);						\
	(head)->last = &(e)->field.next;				\
} while (0)
#define STAILQ_REMOVE_HEAD(head, field) do {				\
	if (((head)->first = (head)->first->field.next) == NULL)	\
		(head)->last = &(head)->first;				\
} while (0)
#define STAILQ_CONCAT(to, from) do {					\
	if ((from)->first != NULL) {					\
		*(to)->last = (from)->first;				\
		(to)->last = (from)->last;				\
		STAILQ_INIT(from);					\
	}								\
} while (0)

/* ---- doubly linked ------------------------------------------------------ */

#define LIST_HEAD(name, type)	struct name { struct type *first; }
#define LIST_ENTRY(type)						\
	struct { struct type *next; struct type **here; }
#define LIST_HEAD_INITIALIZER(head)	{ NULL }
#define LIST_INIT(head)		((void)((head)->first = NULL))
#define LIST_FIRST(head)	((head)->first)
#define LIST_EMPTY(head)	((head)->first == NULL)
#define LIST_NEXT(e, field)	((e)->field.next)
#define LIST_FOREACH(e, head, field)					\
	for ((e) = (head)->first; (e) != NULL; (e) = (e)->field.next)
#define LIST_INSERT_HEAD(head, e, field) do {				\
	if (((e)->field.next = (head)->first) != NULL)			\
		(head)->first->field.here = &(e)->field.next;		\
	(head)->first = (e);						\
	(e)->field.here = &(head)->first;				\
} while (0)
#define LIST_INSERT_AFTER(at, e, field) do {				\
	if (((e)->field.next = (at)->field.next) != NULL)		\
		(e)->field.next->field.here = &(e)->field.next;		\
	(at)->field.next = (e);						\
	(e)->field.here = &(at)->field.next;				\
} while (0)
#define LIST_REMOVE(e, field) do {					\
	if ((e)->field.next != NULL)					\
		(e)->field.next->field.here = (e)->field.here;		\
	*(e)->field.here = (e)->field.next;				\
} while (0)

/* ---- doubly linked, with a tail ----------------------------------------- */

#define TAILQ_HEAD(name, type)						\
	struct name { struct type *first; struct type **last; }
#define TAILQ_ENTRY(type)						\
	struct { struct type *next; struct type **here; }
#define TAILQ_HEAD_INITIALIZER(head)	{ NULL, &(head).first }
#define TAILQ_INIT(head) do {						\
	(head)->first = NULL;						\
	(head)->last = &(head)->first;					\
} while (0)
#define TAILQ_FIRST(head)	((head)->first)
#define TAILQ_EMPTY(head)	((head)->first == NULL)
#define TAILQ_NEXT(e, field)	((e)->field.next)
/*
 * A head and an entry are of one shape: a pointer, and the address of a
 * pointer.  The one that points at the last element stands first in the head
 * or in the entry of the element before, whose own second member tells of the
 * one before that.
 */
#define TAILQ_LAST(head, name)						\
	(*((struct name *)(void *)(head)->last)->last)
#define TAILQ_PREV(e, name, field)					\
	(*((struct name *)(void *)(e)->field.here)->last)
#define TAILQ_FOREACH(e, head, field)					\
	for ((e) = (head)->first; (e) != NULL; (e) = (e)->field.next)
#define TAILQ_FOREACH_REVERSE(e, head, name, field)			\
	for ((e) = TAILQ_LAST(head, name); (e) != NULL;			\
	    (e) = TAILQ_PREV(e, name, field))
#define TAILQ_INSERT_HEAD(head, e, field) do {				\
	if (((e)->field.next = (head)->first) != NULL)			\
		(head)->first->field.here = &(e)->field.next;		\
	else								\
		(head)->last = &(e)->field.next;			\
	(head)->first = (e);						\
	(e)->field.here = &(head)->first;				\
} while (0)
#define TAILQ_INSERT_TAIL(head, e, field) do {				\
	(e)->field.next = NULL;						\
	(e)->field.here = (head)->last;					\
	*(head)->last = (e);						\
	(head)->last = &(e)->field.next;				\
} while (0)
#define TAILQ_INSERT_AFTER(head, at, e, field) do {			\
	if (((e)->field.next = (at)->field.next) != NULL)		\
		(e)->field.next->field.here = &(e)->field.next;		\
	else								\
		(head)->last = &(e)->field.next;			\
	(at)->field.next = (e);						\
	(e)->field.here = &(at)->field.next;				\
} while (0)
#define TAILQ_REMOVE(head, e, field) do {				\
	if ((e)->field.next != NULL)					\
		(e)->field.next->field.here = (e)->field.here;		\
	else								\
		(head)->last = (e)->field.here;				\
	*(e)->field.here = (e)->field.next;				\
} while (0)
#define TAILQ_CONCAT(to, from, field) do {				\
	if ((from)->first != NULL) {					\
		*(to)->last = (from)->first;				\
		(from)->first->field.here = (to)->last;			\
		(to)->last = (from)->last;				\
		TAILQ_INIT(from);					\
	}								\
} while (0)

#endif

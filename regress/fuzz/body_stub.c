/*
 * body_stub: functions that the handlers under body_fuzz do not come to.
 *
 * Without headers: only their names matter.
 */
#include <event2/event.h>
#include <stdlib.h>

/* What would come in a later turn comes now. */
int
event_base_once(struct event_base *base, evutil_socket_t fd, short what,
    event_callback_fn cb, void *arg, const struct timeval *tv)
{
	(void)base;
	(void)tv;
	cb(fd, what, arg);
	return 0;
}

#define NOT_CALLED(f)							\
void f(void);								\
void									\
f(void)									\
{									\
	abort();							\
}

NOT_CALLED(api_box)
NOT_CALLED(api_fail)
NOT_CALLED(api_fail_session)
NOT_CALLED(api_field)
NOT_CALLED(api_no_box)
NOT_CALLED(api_no_session)
NOT_CALLED(boot_follow)
NOT_CALLED(boot_unlisten)
NOT_CALLED(box_by_id)
NOT_CALLED(box_health)
NOT_CALLED(box_json)
NOT_CALLED(box_next)
NOT_CALLED(box_ref)
NOT_CALLED(box_refuses)
NOT_CALLED(box_refuses_talk)
NOT_CALLED(box_row_json)
NOT_CALLED(box_talks)
NOT_CALLED(box_unref)
NOT_CALLED(code_find)
NOT_CALLED(event_append)
NOT_CALLED(feed_free)
NOT_CALLED(feed_new)
NOT_CALLED(health_look)
NOT_CALLED(http_add_header)
NOT_CALLED(http_body)
NOT_CALLED(http_fail_with)
NOT_CALLED(http_on_gone)
NOT_CALLED(http_param)
NOT_CALLED(http_query)
NOT_CALLED(http_query_nth)
NOT_CALLED(http_query_u64)
NOT_CALLED(http_reply_bytes)
NOT_CALLED(http_reply_empty)
NOT_CALLED(http_reply_json)
NOT_CALLED(http_timer)
NOT_CALLED(peer_ask)
NOT_CALLED(peer_code)
NOT_CALLED(peer_detail)
NOT_CALLED(remove_box)
NOT_CALLED(session_find)
NOT_CALLED(session_get)
NOT_CALLED(session_json)
NOT_CALLED(session_ref)
NOT_CALLED(session_row_json)
NOT_CALLED(session_start)
NOT_CALLED(session_unref)
NOT_CALLED(session_wait)
NOT_CALLED(session_wait_drop)
NOT_CALLED(sessions_now)

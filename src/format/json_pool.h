/* json_pool.h - memory for the small pieces of JSON trees.
 *
 *   json_pool_use()   once, first thing in a program, before any JSON value exists
 *
 * A record is some hundred objects of 16 to 128 bytes that come and go together; the general
 * allocator spends a fifth of a session's processor time on them. Here each size has its own list of
 * free pieces, cut from one reserved region of LIMIT_JSON_POOL_BYTES; larger pieces, and what finds
 * no room, are malloc's. Only the thread that called json_pool_use takes pieces from the region; a
 * piece freed by another thread would corrupt the lists and is a BUG. Pieces are kept for reuse and
 * never given back to the system: the region's size in memory is its peak. Sanitized builds do not
 * use it, so that every leak and overrun is seen. */
#ifndef SEGUE_FORMAT_JSON_POOL_H
#define SEGUE_FORMAT_JSON_POOL_H

void json_pool_use(void);

#endif

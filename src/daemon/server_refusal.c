/* What the library refuses by itself: requests that it cannot parse, and that therefore never reach
 * server_on_request.
 *
 * DESIGN. libmicrohttpd (up to 1.0 at least) answers them with pages of its own and has no option for
 * that; 0.9.75 even sends the head of some of them twice, and for too many arguments nothing until the
 * connection times out. But it queues them with its public MHD_queue_response, as a program does its
 * answers, and a function that the program exports (--export-dynamic-symbol) stands before one of a
 * shared library of the same name. So they come here: the problem is sent and the socket shut, and the
 * library goes on as ever, finds that nobody takes its page and closes the connection. Our own answers
 * go past that, with server_queue. Where the library was linked in another way (-Bsymbolic) its pages
 * are back and nothing else changes; daemon_hostile_test would say so.
 *
 * One kind gets its end without an answer: a first line of one word. The library calls nothing of ours
 * between reading it and shutting the socket for writing; the notice of the connection's end comes
 * after that. */
#include "base/log.h"
#include "daemon/server_internal.h"

#include <sys/socket.h>

enum MHD_Result server_queue(struct MHD_Connection *mhd, unsigned status,
                             struct MHD_Response *response) {
  return microhttpd.queue_response(mhd, status, response);
}

static const char *detail_of(unsigned status) {
  switch (status) {
  case 400:
    return "the request is no sound HTTP: its request line, a header field, its length or a chunk "
           "is malformed";
  case 413:
    return "the length or a chunk of the body is over every limit";
  case 414:
    return "the request line is too long: all headers together must fit into 4 KiB";
  case 431:
    return "the arguments and header fields are too long or too many: all together must fit into "
           "4 KiB";
  case 501:
    return "the request uses a part of HTTP that is not supported here";
  case 505:
    return "the request must be of HTTP/1.1 or HTTP/1.0";
  default:
    return "the request could not be read";
  }
}

/* Called by the library only. All of the answer before is with the client, so this one fits into the
 * socket; if it does not, the client has only its end. */
enum MHD_Result MHD_queue_response(struct MHD_Connection *mhd, unsigned status,
                                   struct MHD_Response *page) {
  const union MHD_ConnectionInfo *info =
      microhttpd.get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
  struct buf body = {0}, answer = {0};
  server_problem_text(&body, status, NULL, detail_of(status));
  buf_printf(&answer,
             "HTTP/1.1 %u %s\r\nConnection: close\r\nContent-Type: %s\r\n"
             "Content-Length: %zu\r\n\r\n",
             status, server_title(status), SERVER_PROBLEM_TYPE, body.n);
  buf_str(&answer, buf_view(&body));
  (void)send(info->connect_fd, answer.p, answer.n, MSG_DONTWAIT | MSG_NOSIGNAL);
  (void)shutdown(info->connect_fd, SHUT_RDWR);
  buf_deinit(&body);
  buf_deinit(&answer);
  return server_queue(mhd, status, page);
}

/* Shows what the agents of a followed session say. */
#include "cli/words.h"

#include "format/json_object.h"
#include "os/clock.h"

static bool words_hold(const long calls[WORDS_CALLS], long call) {
  for (size_t i = 0; i < WORDS_CALLS; i++)
    if (calls[i] == call)
      return true;
  return false;
}

static void words_on_piece(void *ctx, long turn, long call, bool thinking, struct str text) {
  struct spoken *w = ctx;
  summary_hear(w->summary, turn, clock_real_ms());
  if (thinking || words_hold(w->ended, call))
    return;
  w->heard = call;
  live_text(w->live, call, text);
}

void words_hear(struct spoken *w, uint64_t seen_seq) {
  w->begun = true;
  listen_hear(&w->from, seen_seq);
}

static void words_over(struct spoken *w, const json_t *call_end, long call, uint64_t seen_seq) {
  struct str text = str_trim(json_view(json_object_get(call_end, "text")));
  if (w->begun)
    words_hear(w, seen_seq); /* they came before this record */
  w->ended[w->next_ended++ % WORDS_CALLS] = call;
  if (w->begun && w->heard != call && text.n > 0 && !words_hold(w->asides, call)) {
    live_text(w->live, call, text);
    live_text(w->live, call, STR("\n"));
  }
  live_text_over(w->live);
}

void words_note(struct spoken *w, const json_t *record, uint64_t seen_seq) {
  struct str type = json_view(json_object_get(record, "type"));
  struct str purpose = json_view(json_object_get(record, "purpose"));
  struct str provider = json_view(json_object_get(record, "provider"));
  long call = (long)json_integer_value(json_object_get(record, "call"));
  /* The output of a command is nobody's words. */
  bool works = str_eq_c(purpose, "execute") && !str_eq_c(provider, "command");
  if (str_eq_c(type, "call_start") && !works)
    w->asides[w->next_aside++ % WORDS_CALLS] = call;
  else if (str_eq_c(type, "call_end"))
    words_over(w, record, call, seen_seq);
}

void words_init(struct spoken *w, const char *socket, struct summary *summary, struct live *live) {
  *w = (struct spoken){.summary = summary, .live = live};
  listen_init(&w->from, socket, summary->session, words_on_piece, w);
}

void words_deinit(struct spoken *w) {
  listen_deinit(&w->from);
}

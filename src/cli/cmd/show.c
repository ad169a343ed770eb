/* segue show: shows a session turn by turn, or one judgment in full. */
#include "audit/explain.h"
#include "audit/report_files.h"
#include "audit/turn_lines.h"
#include "audit/verified_reader.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "cli/turns.h"
#include "core/record.h"
#include "daemon/client.h"
#include "daemon/live_output.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "os/clock.h"
#include "store/shared.h"
#include "store/store.h"
#include "store/summary.h"
#include "view/judgment.h"
#include "view/session_view.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- why it does not run --- */

/* Why a session that was submitted does not run yet: its daemon knows, or its shared store. */

enum { QUEUE_STATUS_BYTES = 24 };

/* Asks the daemon that has the session for its status, and what it says about it (nothing or a
 * sentence). socket: NULL for the usual one. Returns false if the daemon cannot be asked. */
static bool queue_ask_daemon(const char *socket, const char *session,
                             char status[QUEUE_STATUS_BYTES], struct buf *message) {
  AUTO(client_reply_deinit) struct client_reply reply = {0};
  struct err err;
  char path[80];
  print_into(path, sizeof path, "/v1/sessions/%.40s", session);
  bool ok = client_ask(socket, "GET", path, NULL, &reply, &err) && reply.status == 200;
  struct str word = json_view(json_object_get(reply.value, "status"));
  ok = ok && word.n > 0;
  if (ok) {
    print_into(status, QUEUE_STATUS_BYTES, "%s", word.p);
    buf_str(message, json_view(json_object_get(reply.value, "message")));
  }
  return ok;
}

/* Puts why no worker of a shared store takes the session from the queue. Returns false if one has
 * it, or if that is not known. */
static bool queue_why(const struct store *store, const char *session, struct buf *why) {
  struct err ignored;
  if (!store_is_address(store->where))
    return false;
  json_auto_t *places = shared_places(store->where, &ignored);
  buf_str(why, json_view(json_object_get(json_object_get(places, session), "waits")));
  return why->n > 0;
}

/* Prints what it means for `segue show`, and why, on stderr. */
static void queue_say(const char *what, const struct buf *why) {
  cli_say(stderr, "segue show: %s: %s\n", what, buf_c(why));
}

/* --- the agents' words --- */

/* Shows the agents' words in a session that another process runs, for show --follow -v: as they
 * come if a daemon runs it, otherwise each answer once it is complete. */

enum { WORDS_CALLS = 64 };

struct spoken {
  struct listening from;
  struct turn_lines *summary;
  struct live *live;
  bool begun; /* earlier words are not shown */
  long heard; /* the last call that was heard */
  /* These hold calls by number (0: a free place; the oldest is replaced next): finished ones, whose
   * late words are no news, and those that are not the work itself. */
  long ended[WORDS_CALLS], asides[WORDS_CALLS];
  unsigned next_ended, next_aside;
};

static bool words_hold(const long calls[WORDS_CALLS], long call) {
  for (size_t i = 0; i < WORDS_CALLS; i++)
    if (calls[i] == call)
      return true;
  return false;
}

static void words_on_piece(void *ctx, long turn, long call, bool thinking, struct str text) {
  struct spoken *w = ctx;
  turn_lines_hear(w->summary, turn, clock_real_ms());
  turn_lines_output(w->summary, turn, text);
  if (thinking || words_hold(w->ended, call))
    return;
  w->heard = call;
  live_text(w->live, call, text);
}

static void words_hear(struct spoken *w, uint64_t seen_seq) {
  w->begun = true;
  live_output_hear(&w->from, seen_seq);
}

static void words_note(struct spoken *w, const json_t *record, uint64_t seen_seq) {
  struct str type = json_view(json_object_get(record, "type"));
  struct str purpose = json_view(json_object_get(record, "purpose"));
  struct str provider = json_view(json_object_get(record, "provider"));
  long call = (long)json_integer_value(json_object_get(record, "call"));
  /* The output of a command is nobody's words. */
  bool works = str_eq_c(purpose, "execute") && !str_eq_c(provider, "command");
  if (str_eq_c(type, "call_start") && !works) {
    w->asides[w->next_aside++ % WORDS_CALLS] = call;
  } else if (str_eq_c(type, "call_end")) {
    struct str text = str_trim(json_view(json_object_get(record, "text")));
    if (w->begun)
      words_hear(w, seen_seq); /* they came before this record */
    w->ended[w->next_ended++ % WORDS_CALLS] = call;
    if (w->begun && w->heard != call && text.n > 0 && !words_hold(w->asides, call)) {
      live_text(w->live, call, text);
      live_text(w->live, call, STR("\n"));
    }
    live_text_over(w->live);
  }
}

/* --- the command --- */

/* These say how often a followed log is checked, and how many checks in a row must find no owner
 * before a session counts as crashed. */
enum { FOLLOW_POLL_MS = 100, FOLLOW_ORPHAN_LOOKS = 20 };
enum { SHOW_TEXT_BYTES = 4096 }; /* the most of each text in a judgment's view, unless --full */

struct show {
  struct verified_reader book;
  struct turn_lines summary;
  const char *movement; /* MOVEMENT or MOVEMENT#N as given; NULL: the whole session */
  const char *socket;   /* --socket or NULL */
  bool follow, full, json, quiet, colours, to_terminal;
  int columns;
  struct turns_look look;
  struct live live; /* the open turns, with --follow on a terminal */
  struct spoken words;
  bool hears; /* -v: the agents' words are shown as well */
  FILE *out;  /* for turns: stdout, or `turns` until the header is known */
  char *turns;
  size_t turns_bytes;
  json_t *start; /* session_start */
  struct report_files reports;
  json_t *parent; /* for carried state: what it was forked from; or NULL */
  bool headed;    /* the header was printed */
  long explained; /* the turn that was explained last */
};

/* --- the header --- */

static void show_print_row(const struct show *s, const char *name, struct str text) {
  buf_auto_t line = {0};
  (void)cli_fit(&line, text, s->columns - 10);
  printf("%s%-9s%s %s\n", cli_paint(s->colours, COLOUR_DIM), name,
         cli_paint(s->colours, COLOUR_NONE), buf_c(&line));
}

static void print_parent(const struct show *s) {
  buf_auto_t text = buf_of(STR_FMT ", after its record %" JSON_INTEGER_FORMAT,
                           STR_ARG(json_view_at(s->parent, "session")),
                           json_integer_value(json_object_get(s->parent, "seq")));
  show_print_row(s, "forked", buf_view(&text));
}

static void print_header(struct show *s) {
  buf_auto_t text = {0};
  if (s->headed || s->start == NULL)
    return;
  s->headed = true;
  show_print_row(s, "session", str_from(s->summary.session));
  buf_str(&text, buf_view(&s->summary.workflow));
  if (json_view_at(s->start, "workflow_path").n > 0) {
    buf_puts(&text, text.n ? "  " : "");
    buf_str(&text, json_view_at(s->start, "workflow_path"));
  }
  show_print_row(s, "workflow", buf_view(&text));
  struct str rest = str_trim(json_view_at(s->start, "task"));
  if (rest.n > 0)
    show_print_row(s, "task", str_next_line(&rest));
  show_print_row(s, "started", str_from(s->summary.started));
  if (s->parent != NULL)
    print_parent(s);
}

static bool is_submitted(const struct show *s) {
  return json_is_true(json_object_get(json_object_get(s->start, "config"), "submitted"));
}

/* Returns true if the session is queued: submitted, and the daemon of its folder is running. From
 * the queue of a shared store any worker takes it, also one that is not there yet. */
static bool is_queued(const struct show *s) {
  return is_submitted(s) &&
         (store_is_address(s->book.store.where) || store_is_held(&s->book.store, "daemon"));
}

/* Puts the state of an unfinished session that nobody owns. */
static void put_orphan(const struct show *s, struct buf *out) {
  char status[QUEUE_STATUS_BYTES];
  AUTO(summary_deinit) struct summary b = {0};
  struct err ignored;
  if (summary_read(&b, &s->book.ref, &ignored) && summary_waits(&b)) {
    buf_puts(out, "waiting: ");
    summary_say_wait(&b, out);
    return;
  }
  buf_auto_t message = {0}, waits = {0};
  if (!is_queued(s) && is_submitted(s))
    buf_puts(out, "open: a daemon continues it when it starts; segue resume continues it now");
  else if (!is_queued(s))
    buf_puts(out, "open: no process is running it; segue resume continues it");
  else if (queue_ask_daemon(s->socket, s->summary.session, status, &message) && message.n > 0)
    buf_printf(out, "%s: %s", status, buf_c(&message));
  else if (queue_why(&s->book.store, s->summary.session, &waits))
    buf_printf(out, "queued: %s", buf_c(&waits));
  else
    buf_puts(out, "queued: a daemon runs it when its turn comes");
}

static void print_status(const struct show *s) {
  buf_auto_t text = {0};
  const struct turn_lines *sum = &s->summary;
  bool running = strcmp(sum->status, "running") == 0;
  bool orphan = running && !verified_owned(&s->book);
  if (orphan)
    put_orphan(s, &text);
  else
    buf_puts(&text, sum->status);
  if (!orphan && running && sum->open != NULL) {
    buf_printf(&text, ": %s  %s", buf_c(&sum->open->movement), buf_c(&sum->open->now));
  } else if (sum->resumable) {
    /* Names the command that takes a stopped session further, with the option that it needs. */
    const char *flags = turn_lines_resume_flags(&s->summary);
    bool needed = flags[0] == ' ' && flags[1] == '-';
    if (s->summary.asks)
      buf_puts(&text, ": segue inbox says what is asked");
    else
      buf_printf(&text, ": segue resume%s%s continues%s", is_submitted(s) ? " --daemon" : "",
                 needed ? flags : "", needed ? "" : flags);
  }
  /* How long it took, or has been running, stands in its records, unless a clock was set back. */
  int64_t from, to;
  if (record_time_parse(sum->started, &from) && record_time_parse(sum->last_ts, &to) &&
      to >= from) {
    double seconds = (double)(to - from) / 1000;
    bool summary = seconds < 120;
    buf_printf(&text, "%s%.*f %s", running ? ", last record after " : ", took ", summary,
               summary ? seconds : seconds / 60, summary ? "s" : "min");
  }
  show_print_row(s, "status", buf_view(&text));
}

/* Prints what was used, and apart by purpose, movement and provider where there are several. */
static void print_spent(const struct show *s) {
  static const char *const groups[] = {"purposes", "movements", "providers"};
  static const char *const heads[] = {"purpose", "movement", "provider"};
  json_auto_t *spent = turn_lines_spent(&s->summary);
  buf_auto_t text = {0};
  spend_print(spent, &text);
  if (text.n > 0)
    show_print_row(s, "used", buf_view(&text));
  for (size_t i = 0; text.n > 0 && i < ARRAY_LEN(groups); i++) {
    json_t *group = json_object_get(spent, groups[i]);
    const char *head = heads[i];
    JSON_MEMBERS(group, name, part) {
      buf_auto_t line = {0}, own = {0};
      spend_print(part, &own);
      buf_printf(&line, "%s: %s", name, buf_c(&own));
      if (own.n > 0 && json_object_size(group) > 1) {
        show_print_row(s, head, buf_view(&line));
        head = "";
      }
    }
  }
}

/* Prints where the reports are files, and which of them differ from the log. */
static void print_reports(struct show *s) {
  char folder[STORE_NAME_BYTES];
  buf_auto_t text = {0};
  if (s->reports.newest == NULL)
    return;
  report_files_look(&s->reports, &s->book.store, s->summary.session);
  store_report_folder(&s->book.store, s->summary.session, folder);
  report_files_told(&s->reports, true, &text);
  show_print_row(s, "reports", buf_view(&text));
  show_print_row(s, "", str_from(folder));
}

/* --- turns --- */

/* Prints the turns without a judgment so far, oldest first. */
static void print_open(const struct show *s, const struct turn_line *line) {
  if (line == NULL)
    return;
  print_open(s, line->next);
  struct turn_line shown = *line;
  shown.leads_to = shown.method = (struct buf){0};
  buf_puts(&shown.leads_to, "-");
  buf_puts(&shown.method, strcmp(s->summary.status, "running") == 0 ? "open" : "not judged");
  turns_print(stdout, &shown, &s->look);
  buf_deinit(&shown.leads_to);
  buf_deinit(&shown.method);
}

/* Prints an explanation. Titles stand in the first column: they are what the eye looks for. */
static void print_explanation(const struct show *s, struct str text) {
  while (text.p != NULL && text.n > 0) {
    struct str line = str_next_line(&text);
    bool title = line.n > 0 && line.p[0] != ' ';
    printf("%s" STR_FMT "%s\n", title ? cli_paint(s->colours, COLOUR_BOLD) : "", STR_ARG(line),
           title ? cli_paint(s->colours, COLOUR_NONE) : "");
  }
}

static bool show_explain(struct show *s, const struct explain_found *found, struct err *err) {
  const struct explain_opts opts = {.full = s->full, .columns = (size_t)s->columns};
  buf_auto_t text = {0};
  if (s->explained != 0)
    putchar('\n');
  if (found->runs > 1 && !s->follow)
    printf("%srun %ld of %ld of this movement; MOVEMENT#N shows another one%s\n",
           cli_paint(s->colours, COLOUR_DIM), found->run, found->runs,
           cli_paint(s->colours, COLOUR_NONE));
  bool ok = explain_turn(&s->book, found->turn, &opts, &text, err);
  if (ok)
    print_explanation(s, buf_view(&text));
  s->explained = found->turn;
  return ok;
}

/* --- records --- */

/* Prints the line as it is in the log; on a terminal only ASCII, so that nothing controls it. */
static void show_print_record(const struct show *s, const json_t *record, struct str line) {
  char_auto_t *text = NULL;
  if (s->to_terminal || line.p == NULL)
    text = json_dump_text(record, JSON_COMPACT | (s->to_terminal ? JSON_ENSURE_ASCII : 0));
  if (text != NULL)
    printf("%s\n", text);
  else
    printf(STR_FMT "\n", STR_ARG(line));
}

static void take_record(struct show *s, const json_t *record, struct str line) {
  const struct turn_line *turn = turn_lines_feed_json(&s->summary, record);
  const char *type = cli_word(record, "type");
  report_files_note(&s->reports, record);
  if (strcmp(type, "session_start") == 0) {
    json_decref(s->start);
    s->start = json_incref((json_t *)record);
  }
  if (strcmp(type, "carried") == 0) {
    json_decref(s->parent);
    s->parent = json_incref(json_object_get(record, "parent"));
    if (s->headed && s->parent != NULL)
      print_parent(s);
  }
  if (s->movement != NULL || s->quiet)
    return;
  if (s->hears)
    words_note(&s->words, record, s->book.records);
  if (s->json)
    show_print_record(s, record, line);
  else if (s->follow)
    print_header(s);
  s->look.names = s->summary.names;
  if (turn == NULL || s->json)
    return;
  live_clear(&s->live);
  turns_print_next(s->out, &s->summary, turn, &s->look);
}

/* Reads everything that can be read now, even behind a damaged record, for what it is worth. */
static void read_on(struct show *s) {
  json_t *record;
  while ((record = verified_next(&s->book)) != NULL) {
    take_record(s, record, s->book.line);
    json_decref(record);
  }
  while ((record = verified_next_unproven(&s->book)) != NULL) {
    take_record(s, record, (struct str){NULL, 0});
    json_decref(record);
  }
  fflush(stdout);
}

/* Shows the movement that was asked for. With --follow, each run is explained once it is judged. */
static bool show_movement(struct show *s, struct err *err) {
  struct explain_found found;
  if (!explain_find(&s->book, s->movement, false, &found, err))
    return s->follow && err->code == ERR_NOT_FOUND;
  if (found.turn == s->explained)
    return true;
  for (const struct turn_line *open = s->summary.open; open && s->follow; open = open->next)
    if (open->turn == found.turn && strcmp(s->summary.status, "running") == 0)
      return true; /* wait for its judgment */
  if (!s->json)
    return show_explain(s, &found, err);
  s->explained = found.turn;
  for (size_t i = 0; i < s->book.place_count; i++) {
    if (s->book.places[i].turn != found.turn)
      continue;
    json_auto_t *record = verified_get(&s->book, s->book.places[i].seq, err);
    if (record == NULL)
      return false;
    show_print_record(s, record, (struct str){NULL, 0});
  }
  return true;
}

/* --- following --- */

/* Returns true if the session will not go on. A daemon is about to continue one that was answered a
 * moment ago. */
static bool over(const struct show *s) {
  bool goes_on = strcmp(s->summary.status, "running") == 0 || s->summary.answered;
  return s->book.state == VERIFIED_DAMAGED || !goes_on;
}

/* Returns true, with a message, if the daemon has the session and does not continue it. */
static bool is_given_up(const struct show *s) {
  char status[QUEUE_STATUS_BYTES];
  buf_auto_t why = {0};
  bool up =
      queue_ask_daemon(s->socket, s->summary.session, status, &why) && strcmp(status, "open") == 0;
  if (up)
    queue_say("the daemon does not continue this session", &why);
  return up;
}

/* Says once why a queued session does not begin, if that is known. */
static void tell_waits(const struct show *s, bool *told) {
  buf_auto_t why = {0};
  if (!*told && queue_why(&s->book.store, s->summary.session, &why)) {
    queue_say("it waits", &why);
    *told = true;
  }
}

/* Follows the session until it ends, stops, or nobody runs it. */
static bool show_follow(struct show *s, struct err *err) {
  int orphan_looks = 0;
  bool ok = true, told = false;
  while (ok && s->book.records > 0 && !over(s) && !ferror(stdout)) {
    orphan_looks = verified_owned(&s->book) ? 0 : orphan_looks + 1;
    if (orphan_looks > FOLLOW_ORPHAN_LOOKS) {
      bool queued = is_queued(s);
      live_clear(&s->live);
      if (!queued)
        fprintf(stderr,
                "segue show: no process is running this session; segue resume continues it\n");
      if (!queued || is_given_up(s))
        break;
      tell_waits(s, &told);
      orphan_looks = 0;
    }
    live_draw(&s->live, &s->summary);
    /* Waits until it is worth looking again. */
    struct pollfd words = {.fd = s->hears ? s->words.from.fd : -1, .events = POLLIN};
    (void)poll(&words, 1, FOLLOW_POLL_MS);
    if (s->hears)
      words_hear(&s->words, s->book.records);
    if (!verified_again(&s->book))
      return live_clear(&s->live), err_set(err, ERR_NOT_FOUND, "the log is gone");
    read_on(s);
    if (s->movement != NULL)
      ok = show_movement(s, err);
  }
  live_clear(&s->live);
  return ok;
}

/* --- the command --- */

static int print_closing(struct show *s, const char *path) {
  if (s->movement == NULL && !s->json && !s->quiet && s->start != NULL) {
    print_header(s);
    if (!s->follow) {
      print_status(s);
      print_spent(s);
      print_reports(s);
    }
    if (s->turns != NULL) {
      fflush(s->out);
      fputs(s->turns, stdout);
    }
    print_open(s, s->summary.open);
    turns_print_end(stdout, &s->summary, path, &s->look);
    fputs(buf_c(&s->summary.evidence), stdout);
    if (s->follow && s->summary.resumable) {
      char id[STORE_ID_BYTES];
      const char *word = resolve_id_word_for(path, id);
      if (s->summary.asks)
        cli_say(stdout, "  answer with: segue inbox, then segue answer %s\n", word);
      else
        cli_say(stdout, "  continue with: segue resume %s%s%s\n", word,
                is_submitted(s) ? " --daemon" : "", turn_lines_resume_flags(&s->summary));
    }
  }
  fflush(stdout);
  if (s->book.state == VERIFIED_DAMAGED && s->start == NULL) {
    cli_say(stderr, "segue show: %s is not the log of a session: segue ls lists the logs\n", path);
    return STATUS_USAGE;
  }
  if (s->book.state == VERIFIED_DAMAGED) {
    buf_auto_t why = {0};
    buf_safe(&why, str_from(s->book.damage.text), false);
    fprintf(stderr,
            "segue show: the log is damaged at record %llu: %s\nsegue show: what is shown from "
            "there on cannot be trusted\n",
            (unsigned long long)s->book.records + 1, buf_c(&why));
    return STATUS_FAILED;
  }
  if (s->book.state == VERIFIED_TORN && !verified_owned(&s->book))
    fprintf(stderr, "segue show: the log ends with a torn tail of %llu bytes\n",
            (unsigned long long)s->book.torn_bytes);
  if (s->start == NULL) {
    fprintf(stderr, "segue show: the log has no records\n");
    return STATUS_USAGE;
  }
  return s->follow ? turns_status(&s->summary) : STATUS_COMPLETE;
}

/* --- as a view --- */

static bool show_turn_view(const struct store_ref *ref, const char *word, bool full,
                           struct err *err) {
  AUTO(verified_close) struct verified_reader book = {0};
  struct explain_found found;
  struct view_judgment told;
  if (!verified_open(&book, ref, true, err))
    return false;
  verified_rest(&book);
  size_t max = full ? SIZE_MAX : SHOW_TEXT_BYTES;
  bool ok = explain_find(&book, word, false, &found, err) &&
            view_judgment_read(&told, &book, found.turn, max, max, err);
  if (ok) {
    json_io_put(view_judgment_json(&told));
    view_judgment_deinit(&told);
  }
  return ok;
}

/* Prints the session, or one judgment of it, as pages and reports have them. */
static int show_view(const struct cli_args *args) {
  const char *as = cli_value(args, "as");
  struct store_ref ref;
  AUTO(view_session_deinit) struct view_session v = {0};
  struct err err = {0};
  if (strcmp(as, "view") != 0)
    err_set(&err, ERR_USAGE, "--as %.40s: write --as view", as);
  else if (cli_flag(args, "follow") || cli_flag(args, "json"))
    err_set(&err, ERR_USAGE, "--as view cannot be combined with --follow or --json");
  if (err.code != ERR_NONE || !resolve_id_session(args->words[0], cli_value(args, "logs"),
                                                  cli_value(args, "socket"), &ref, &err))
    return cli_fail("show", &err);
  if (args->word_count > 1) {
    bool ok = show_turn_view(&ref, args->words[1], cli_flag(args, "full"), &err);
    return cli_done("show", ok, &err);
  }
  if (!view_session_read(&v, &ref, &err))
    return cli_fail_with(STATUS_USAGE, "show", &err);
  json_io_put(view_session_json(&v));
  return v.chain == VIEW_BAD ? STATUS_FAILED : STATUS_COMPLETE;
}

static int show_show(const struct cli_args *args) {
  struct err err = {0};
  struct store_ref ref;
  int status;
  if (cli_value(args, "as") != NULL)
    return show_view(args);
  struct show s = {.movement = args->word_count > 1 ? args->words[1] : NULL,
                   .socket = cli_value(args, "socket"),
                   .follow = cli_flag(args, "follow"),
                   .full = cli_flag(args, "full"),
                   .json = cli_flag(args, "json"),
                   .quiet = cli_flag(args, "quiet") && cli_flag(args, "follow"),
                   .colours = cli_colours(STDOUT_FILENO),
                   .to_terminal = isatty(STDOUT_FILENO) == 1,
                   .columns = cli_columns(STDOUT_FILENO),
                   .look = turns_look_of(STDOUT_FILENO),
                   .out = stdout};
  live_init(&s.live, &s.look, cli_flag(args, "verbose"));
  if (!s.follow || s.json || s.quiet || s.movement != NULL)
    s.live.on = false;
  s.hears = s.live.on && cli_flag(args, "verbose");
  s.words = (struct spoken){.summary = &s.summary, .live = &s.live};
  live_output_init(&s.words.from, s.socket, s.summary.session, words_on_piece, &s.words);
  if (!resolve_id_session(args->words[0], cli_value(args, "logs"), cli_value(args, "socket"), &ref,
                          &err))
    return cli_fail("show", &err);
  if (!verified_open(&s.book, &ref, true, &err))
    return cli_fail_with(STATUS_USAGE, "show", &err);
  if (!s.follow && (s.out = open_memstream(&s.turns, &s.turns_bytes)) == NULL)
    die("out of memory");
  read_on(&s);
  bool ok = s.movement == NULL || s.start == NULL || show_movement(&s, &err);
  if (ok && s.follow)
    ok = show_follow(&s, &err);
  if (ok && s.follow && s.movement != NULL && s.explained == 0)
    ok = err_set(&err, ERR_NOT_FOUND, "%.160s did not run in this session", s.movement);
  status = print_closing(&s, ref.name);
  if (!ok) {
    int failed = cli_fail("show", &err);
    status = status == STATUS_FAILED ? status : failed;
  }
  if (s.out != stdout)
    fclose(s.out);
  free(s.turns);
  json_decref(s.start);
  json_decref(s.parent);
  report_files_deinit(&s.reports);
  turn_lines_deinit(&s.summary);
  live_deinit(&s.live);
  live_output_deinit(&s.words.from);
  verified_close(&s.book);
  return status;
}

const struct cli_command cmd_show = {COMMAND_SHOW, .run = show_show};

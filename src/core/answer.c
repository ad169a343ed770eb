/* Finds the question that an answer is for, checks the answer, and lists what is asked. */
#include "core/answer.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "core/record.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <assert.h>
#include <string.h>

void core_answer_deinit(struct core_answer *answer) {
  json_decref(answer->value);
  answer->value = NULL;
}

/* Finds the last turn that asks among those of the movement of that name (the whole one or, for a
 * child, its own), and counts them. */
static const struct turn *find_asking(const struct core *core, const char *name, size_t *count) {
  const struct turn *found = NULL;
  *count = 0;
  for (const struct turn *turn = core->turns; turn; turn = turn->next) {
    const struct movement *m = core_movement(core, turn);
    if (turn->question != NULL &&
        (name == NULL || str_eq_c(m->name, name) || str_eq_c(m->own_name, name))) {
      found = turn;
      ++*count;
    }
  }
  return found;
}

/* Returns the last answer to the question that is meant, NULL if there was none. */
static const json_t *answer_before(const struct core *core, const struct core_answer *answer) {
  size_t n = json_array_size(core->answers);
  for (size_t i = n; i-- > 0;) {
    const json_t *before = json_array_get(core->answers, i);
    json_int_t seq = json_int_at(before, "question");
    struct str name = json_view(json_at(before, "movement"));
    const char *dot = memchr(name.p, '.', name.n);
    bool named = answer->movement == NULL || str_eq_c(name, answer->movement) ||
                 (dot != NULL && strcmp(dot + 1, answer->movement) == 0);
    if (answer->question > 0 ? (uint64_t)seq == answer->question : named)
      return before;
  }
  return NULL;
}

static bool say_answered(const json_t *before, struct err *err) {
  const json_t *by = json_at(before, "by");
  buf_auto_t who = {0};
  if (by != NULL)
    buf_printf(&who, "by %s%s (uid %lld)", json_at(by, "user") != NULL ? "one who says " : "",
               json_string_value(json_at(by, "name")), (long long)json_int_at(by, "uid"));
  else
    buf_puts(&who, "by its deadline, with the default");
  struct str text = json_view(json_at(before, "text"));
  if (text.n == 0)
    text = json_view(json_at(before, "answer"));
  err_set(err, ERR_INVALID, "%s was answered already, %s at %s: %.200s",
          json_string_value(json_at(before, "movement")), buf_c(&who),
          json_string_value(json_at(before, "at")), text.p);
  return false;
}

static bool take_choice(const json_t *choices, struct core_answer *answer, struct err *err) {
  size_t n = json_array_size(choices);
  if (answer->says == SAYS_CHOICE && choices == NULL)
    return err_set(err, ERR_USAGE, "the question has no choices: answer with a text");
  if (answer->says == SAYS_CHOICE && (answer->choice < 1 || (size_t)answer->choice > n))
    return err_set(err, ERR_USAGE, "there is no choice %ld: use 1 to %zu", answer->choice, n);
  if (answer->says == SAYS_CHOICE)
    answer->text = json_view(json_array_get(choices, (size_t)answer->choice - 1));
  answer->text = choices ? str_trim(answer->text) : answer->text;
  if (choices == NULL || ask_choice(choices, answer->text) > 0)
    return true;
  buf_auto_t words = {0};
  for (size_t i = 0; i < n; i++)
    buf_printf(&words, "%s%s", i > 0 ? ", " : "", json_string_value(json_array_get(choices, i)));
  err_set(err, ERR_USAGE, "the answer must be one of its choices: %.300s", buf_c(&words));
  return false;
}

static bool answer_take_words(const struct core *core, const struct turn *turn,
                              struct core_answer *answer, struct err *err) {
  const struct movement *m = core_movement(core, turn);
  bool is_value = str_eq_c(json_view(json_at(turn->question, "kind")), "value");
  if (!take_choice(json_at(turn->question, "choices"), answer, err))
    return false;
  if (answer->text.n > LIMIT_ANSWER_BYTES)
    return err_set(err, ERR_USAGE, "an answer has at most %u bytes: name a file in it",
                   LIMIT_ANSWER_BYTES);
  if (str_trim(answer->text).n == 0)
    return err_set(err, ERR_USAGE, "the answer is empty");
  const struct schema *schema = m->ask ? m->ask->schema : NULL;
  const json_t *document = m->ask ? m->ask->document : NULL;
  if (is_value) {
    schema = m->structured->schema;
    document = m->structured->document;
  }
  if (schema == NULL)
    return true;
  answer->value = ask_read(schema, document, answer->text, err);
  return answer->value != NULL;
}

bool core_answer_settle(const struct core *core, struct core_answer *answer, int64_t now_ms,
                        struct err *err) {
  size_t count;
  const struct turn *turn = find_asking(core, answer->movement, &count);
  bool approves = answer->says == SAYS_APPROVE || answer->says == SAYS_REJECT;
  char until[RECORD_TIME_BYTES];
  assert(answer->value == NULL);
  for (const struct turn *t = core->turns; answer->question > 0 && t; t = t->next)
    if (t->question != NULL && t->question_seq == answer->question) {
      turn = t;
      count = 1;
    }
  bool meant = turn != NULL && (answer->question == 0 || turn->question_seq == answer->question);
  if (core->status == SESSION_ENDED || !meant) {
    const json_t *before = answer_before(core, answer);
    size_t any;
    if (before != NULL)
      return say_answered(before, err);
    const struct turn *other = find_asking(core, NULL, &any);
    if (other != NULL)
      return err_set(err, ERR_USAGE, "%s asks nothing: what is open is asked by " STR_FMT,
                     answer->movement ? answer->movement : "that question",
                     STR_ARG(core->workflow->movements[other->movement].name));
    return err_set(err, ERR_INVALID, "it asks nothing: segue inbox lists what waits for a person");
  }
  if (count > 1) {
    buf_auto_t names = {0};
    for (const struct turn *one = core->turns; one; one = one->next)
      if (one->question != NULL)
        buf_printf(&names, "%s" STR_FMT, names.n > 0 ? ", " : "",
                   STR_ARG(core->workflow->movements[one->movement].name));
    err_set(err, ERR_USAGE, "several movements ask: name the one to answer: %.300s", buf_c(&names));
    return false;
  }
  if (turn->until_ms > 0 && now_ms >= turn->until_ms) {
    record_time(turn->until_ms, until);
    return err_set(err, ERR_INVALID, "its deadline passed at %s: the default is taken", until);
  }
  answer->turn = turn->id;
  if (approves != str_eq_c(json_view(json_at(turn->question, "kind")), "approve"))
    return err_set(err, ERR_USAGE, "it asks for %s",
                   approves ? "an answer: segue answer" : "approval: segue approve or reject");
  if (!approves)
    return answer_take_words(core, turn, answer, err);
  return answer->text.n <= LIMIT_WHY_BYTES ||
         err_set(err, ERR_USAGE, "a reason has at most %u bytes", LIMIT_WHY_BYTES);
}

size_t core_question_count(const struct core *core) {
  size_t n = 0;
  for (const struct turn *turn = core->turns; turn; turn = turn->next)
    n += turn->question != NULL;
  return n;
}

json_t *core_question_item(const json_t *question, uint64_t seq, long turn, struct str movement,
                           struct str since, struct str until) {
  static const char *const kept[] = {"kind", "choices", "default", "runs", "plan", "blocks"};
  const json_t *files = json_at(question, "files");
  struct str text = json_view(json_at(question, "text"));
  json_t *item = json_object();
  json_put(item, "question", json_integer((json_int_t)seq));
  json_put(item, "turn", json_integer(turn));
  json_put(item, "movement", json_text(movement));
  if (text.n > LIMIT_INBOX_TEXT_BYTES)
    text.n = utf8_floor(text.p, LIMIT_INBOX_TEXT_BYTES);
  json_put(item, "text", json_text(text));
  for (size_t i = 0; i < ARRAY_LEN(kept); i++)
    json_object_set_nocheck(item, kept[i], json_object_get(question, kept[i]));
  size_t n = json_array_size(files), most = LIMIT_INBOX_FILE_COUNT;
  json_t *first = n > 0 ? json_array() : NULL;
  for (size_t i = 0; i < n && i < most; i++)
    json_array_append(first, json_array_get(files, i));
  if (n > most) /* the last entry says how many more there are */
    json_array_append_new(first, json_pack("{sI}", "more", (json_int_t)(n - most)));
  if (first != NULL)
    json_put(item, "files", first);
  json_put(item, "since", json_text(since));
  json_put_text(item, "until", until);
  return item;
}

json_t *core_questions(const struct core *core) {
  json_t *list = NULL;
  for (const struct turn *turn = core->turns; turn; turn = turn->next)
    if (turn->question != NULL) {
      char since[RECORD_TIME_BYTES], until[RECORD_TIME_BYTES] = "";
      list = list ? list : json_array();
      record_time(turn->asked_ms, since);
      if (turn->until_ms > 0)
        record_time(turn->until_ms, until);
      json_t *item =
          core_question_item(turn->question, turn->question_seq, turn->id,
                             core_movement(core, turn)->name, str_from(since), str_from(until));
      json_put(item, "workflow", json_text(core->workflow->name));
      json_array_append_new(list, item);
    }
  return list;
}

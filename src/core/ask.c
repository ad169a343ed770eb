/* Builds what a movement asks a person, finds the question that an answer means and reads it. */
#include "core/ask.h"

#include "base/limits.h"
#include "core/answer.h"
#include "core/movement_limits.h"
#include "core/record.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "structured/reply_check.h"

#include <assert.h>
#include <string.h>

long ask_choice(const json_t *choices, struct str text) {
  size_t i;
  const json_t *v;
  json_array_foreach((json_t *)choices, i, v) {
    if (str_eq(json_view(v), text))
      return (long)i + 1;
  }
  return 0;
}

int ask_rule(const struct movement *m, struct str text) {
  for (size_t i = 0; i < m->rule_count; i++)
    if (m->rules[i].kind == RULE_LABEL && str_eq(m->rules[i].label, text))
      return m->rules[i].number;
  return 0;
}

bool ask_needs_no_judge(const struct movement *m) {
  size_t i;
  const json_t *v;
  if (m->ask == NULL || m->ask->choices == NULL)
    return false;
  json_array_foreach((json_t *)m->ask->choices, i, v) {
    if (ask_rule(m, json_view(v)) == 0)
      return false;
  }
  return true;
}

json_t *ask_read(const struct schema *schema, const json_t *document, struct str text,
                 struct err *err) {
  const struct answer_spec spec = {.schema = schema,
                                   .document = document,
                                   .max_bytes = LIMIT_STRUCTURED_BYTES,
                                   .max_depth = LIMIT_STRUCTURED_DEPTH};
  struct answer answer;
  json_t *word = json_text(text), *value = NULL;
  answer_read(&answer, &spec, NULL, text.p, text.n);
  bool found = answer.outcome == ANSWER_VALID;
  if (!found) { /* the schema is for texts: take the words themselves */
    struct answer plain;
    answer_read(&plain, &spec, word, "", 0);
    if (plain.outcome == ANSWER_VALID)
      value = json_incref(plain.value);
    answer_deinit(&plain);
  } else {
    value = json_incref(answer.value);
  }
  const json_t *first = json_array_get(answer.errors, 0);
  if (value == NULL)
    err_set(err, ERR_USAGE, "the answer does not fit the schema: %.80s: %.300s",
            json_string_value(json_at(first, "path")),
            json_string_value(json_at(first, "message")));
  answer_deinit(&answer);
  json_decref(word);
  return value;
}

/* Checks the answer that is taken when the deadline passes: it must be a valid one. */
static bool check_default(const struct ask_config *ask, struct err *why) {
  json_t *value;
  if (ask->otherwise.n == 0)
    return ask->deadline_ms == 0 ||
           err_set(why, ERR_INVALID, "is missing: it is the answer when the deadline passes");
  if (ask->deadline_ms == 0)
    return err_set(why, ERR_INVALID, "needs a deadline, after which it is taken");
  if (ask->otherwise.n > LIMIT_ANSWER_BYTES)
    return err_set(why, ERR_INVALID, "is over %u bytes", LIMIT_ANSWER_BYTES);
  if (ask->choices != NULL && ask_choice(ask->choices, ask->otherwise) == 0)
    return err_set(why, ERR_INVALID, "is none of the choices");
  if (ask->schema == NULL)
    return true;
  value = ask_read(ask->schema, ask->document, ask->otherwise, why);
  json_decref(value);
  return value != NULL;
}

static bool build_ask(struct arena *arena, const json_t *object, struct movement *m,
                      const char **key, struct err *why) {
  struct schema_errors errors = {0};
  struct ask_config *ask = arena_array(arena, 1, sizeof *ask);
  m->ask = ask; /* from here on ask_deinit frees what it holds */
  ask->question = json_view(json_at(object, "question"));
  ask->choices = json_at(object, "choices");
  ask->document = json_at(object, "schema");
  ask->otherwise = json_view(json_at(object, "default"));
  ask->deadline_ms = limits_deadline_ms(json_view(json_at(object, "deadline")));
  *key = "ask.question";
  if (str_trim(ask->question).n == 0)
    return err_set(why, ERR_INVALID, "is empty: write what a person is asked");
  *key = "ask.schema";
  if (ask->document != NULL && ask->choices != NULL)
    return err_set(why, ERR_INVALID, "cannot be combined with choices: keep one of them");
  if (ask->document != NULL) {
    ask->schema = schema_compile(ask->document, NULL, &errors, NULL);
    if (ask->schema == NULL)
      err_set(why, ERR_INVALID, "%.100s: %.280s", errors.count ? errors.items[0].path : "$",
              errors.count ? errors.items[0].message : "cannot be used");
    schema_errors_deinit(&errors);
    if (ask->schema == NULL)
      return false;
  }
  *key = "ask.default";
  return check_default(ask, why);
}

bool ask_build(struct arena *arena, const json_t *object, struct movement *m, const char **key,
               struct err *why) {
  const json_t *asks = json_at(object, "ask"), *approve = json_at(object, "approve");
  assert(m->ask == NULL);
  assert(m->approve == NULL);
  if (approve != NULL) {
    m->approve = arena_array(arena, 1, sizeof *m->approve);
    m->approve->question = json_view(json_at(approve, "question"));
    m->approve->deadline_ms = limits_deadline_ms(json_view(json_at(approve, "deadline")));
    m->approve->approves = str_eq_c(json_view(json_at(approve, "default")), "approve");
    m->approve->on_reject = NEXT_ABORT;
    *key = "approve.default";
    if (json_at(approve, "default") != NULL && m->approve->deadline_ms == 0)
      return err_set(why, ERR_INVALID, "needs a deadline, after which it is taken");
  }
  *key = "ask";
  if (asks != NULL && (m->argv != NULL || m->approve != NULL || m->structured != NULL))
    return err_set(why, ERR_INVALID, "a movement with ask does no work of its own");
  return asks == NULL || build_ask(arena, asks, m, key, why);
}

void ask_deinit(struct movement *m) {
  if (m->ask != NULL)
    schema_free(m->ask->schema);
}

/* --- answers --- */

void core_answer_deinit(struct core_answer *answer) {
  json_decref(answer->value);
  answer->value = NULL;
}

/* Returns true if `name` is the movement's whole name or, for a child, its own. */
static bool answer_is_named(const struct core *core, const struct turn *turn, const char *name) {
  const struct movement *m = &core->workflow->movements[turn->movement];
  return name == NULL || str_eq_c(m->name, name) || str_eq_c(m->own_name, name);
}

static const struct turn *find_asking(const struct core *core, const char *name, size_t *count) {
  const struct turn *found = NULL;
  *count = 0;
  for (const struct turn *turn = core->turns; turn; turn = turn->next)
    if (turn->question != NULL && answer_is_named(core, turn, name)) {
      found = turn;
      ++*count;
    }
  return found;
}

/* Returns the last answer to the question that is meant, NULL if there was none. */
static const json_t *answer_before(const struct core *core, const struct core_answer *answer) {
  size_t n = json_array_size(core->answers);
  for (size_t i = n; i-- > 0;) {
    const json_t *before = json_array_get(core->answers, i);
    json_int_t seq = json_integer_value(json_at(before, "question"));
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
  struct buf who = {0};
  if (by != NULL)
    buf_printf(&who, "by %s%s (uid %lld)", json_at(by, "user") != NULL ? "one who says " : "",
               json_string_value(json_at(by, "name")),
               (long long)json_integer_value(json_at(by, "uid")));
  else
    buf_puts(&who, "by its deadline, with the default");
  struct str text = json_view(json_at(before, "text"));
  if (text.n == 0)
    text = json_view(json_at(before, "answer"));
  err_set(err, ERR_INVALID, "%s was answered already, %s at %s: %.200s",
          json_string_value(json_at(before, "movement")), buf_c(&who),
          json_string_value(json_at(before, "at")), text.p);
  buf_deinit(&who);
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
  struct buf words = {0};
  for (size_t i = 0; i < n; i++)
    buf_printf(&words, "%s%s", i > 0 ? ", " : "", json_string_value(json_array_get(choices, i)));
  err_set(err, ERR_USAGE, "the answer must be one of its choices: %.300s", buf_c(&words));
  buf_deinit(&words);
  return false;
}

static bool answer_take_words(const struct core *core, const struct turn *turn,
                              struct core_answer *answer, struct err *err) {
  const struct movement *m = &core->workflow->movements[turn->movement];
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
    return err_set(err, ERR_INVALID, "it asks nothing");
  }
  if (count > 1) {
    struct buf names = {0};
    for (const struct turn *one = core->turns; one; one = one->next)
      if (one->question != NULL)
        buf_printf(&names, "%s" STR_FMT, names.n > 0 ? ", " : "",
                   STR_ARG(core->workflow->movements[one->movement].name));
    err_set(err, ERR_USAGE, "several movements ask: name the one to answer: %.300s", buf_c(&names));
    buf_deinit(&names);
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

/* Reads what a person says to a question. */
#include "host/parse_answer.h"

#include "base/limits.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "host/resume_options.h"

#include <string.h>

static const char *const answer_members[] = {"movement", "question", "text",
                                             "choice",   "name",     NULL};
static const char *const verdict_members[] = {"movement", "question", "reason", "name", NULL};

static bool parsed_answer_members_known(const json_t *body, const char *const *members,
                                        struct err *err) {
  const char *key;
  json_t *value;
  if (!resume_options_known_members(body, members, err))
    return false;
  json_object_foreach((json_t *)body, key, value) {
    bool number = strcmp(key, "question") == 0 || strcmp(key, "choice") == 0;
    if (number && (!json_is_integer(value) || json_integer_value(value) < 1))
      return err_set(err, ERR_INVALID, "%s must be a number from 1", key);
    if (!number && !json_is_string(value))
      return err_set(err, ERR_INVALID, "%s must be a text", key);
    if (!number && memchr(json_string_value(value), '\0', json_string_length(value)) != NULL)
      return err_set(err, ERR_INVALID, "%s must be a text without NUL", key);
  }
  return true;
}

static bool parsed_answer_take_name(struct parsed_answer *said, struct err *err) {
  struct str name = json_view(json_at(said->body, "name"));
  said->by = resume_options_person();
  said->core.by = said->by;
  if (json_at(said->body, "name") == NULL)
    return true;
  if (str_trim(name).n == 0 || name.n > LIMIT_NAME_BYTES || str_has_control(name))
    return err_set(err, ERR_INVALID, "name must be one line of 1 to %u bytes", LIMIT_NAME_BYTES);
  if (!str_eq(name, json_view(json_at(said->by, "name"))))
    json_put(said->by, "user", json_incref(json_at(said->by, "name")));
  json_put(said->by, "name", json_incref(json_at(said->body, "name")));
  return true;
}

static bool parsed_answer_take_answer(struct parsed_answer *said, struct err *err) {
  const json_t *text = json_at(said->body, "text"), *choice = json_at(said->body, "choice");
  if ((text == NULL) == (choice == NULL))
    return err_set(err, ERR_INVALID, "give either text or choice");
  said->core.text = json_view(text);
  if (choice != NULL) {
    json_int_t number = json_integer_value(choice);
    said->core.says = SAYS_CHOICE;
    said->core.choice = number < LIMIT_CHOICE_COUNT ? (long)number : (long)LIMIT_CHOICE_COUNT + 1;
  }
  return true;
}

bool parsed_answer_parse(struct parsed_answer *said, const json_t *body, enum answer_says says,
                         struct err *err) {
  bool verdict = says == SAYS_APPROVE || says == SAYS_REJECT;
  *said = (struct parsed_answer){.core = {.says = says, .text = STR("")}};
  said->body = body ? json_clone(body) : json_object();
  if (!json_is_object(said->body))
    return err_set(err, ERR_INVALID, "the body must be an object, such as {\"text\": \"yes\"}");
  if (!parsed_answer_members_known(said->body, verdict ? verdict_members : answer_members, err) ||
      !parsed_answer_take_name(said, err))
    return false;
  said->core.movement = json_string_value(json_at(said->body, "movement"));
  said->core.question = (uint64_t)json_integer_value(json_at(said->body, "question"));
  if (!verdict)
    return parsed_answer_take_answer(said, err);
  said->core.text = json_view(json_at(said->body, "reason"));
  return true;
}

void parsed_answer_deinit(struct parsed_answer *said) {
  core_answer_deinit(&said->core);
  json_decref(said->body);
  json_decref(said->by);
  *said = (struct parsed_answer){0};
}

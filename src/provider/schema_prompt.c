#include "provider/schema_prompt.h"

#include "format/json_write.h"
#include "structured/extract_schema.h"

#include <string.h>

static const char *root_word(const json_t *schema) {
  enum extract_want want = extract_schema_want(schema);
  return want == EXTRACT_WANT_OBJECT ? "object" : want == EXTRACT_WANT_ARRAY ? "array" : "value";
}

void schema_prompt_append(struct buf *prompt, const json_t *schema) {
  struct buf text = {0};
  json_write(schema, &text);
  bool shown = prompt->n > 0 && memmem(prompt->p, prompt->n, text.p, text.n) != NULL;
  if (!shown)
    buf_printf(prompt,
               "%s\n---\n\nReply with a single JSON %s that is valid against this JSON Schema, and "
               "with nothing else: no words before or after it, no comments.\n\n```json\n%s\n```\n",
               prompt->n > 0 && prompt->p[prompt->n - 1] == '\n' ? "" : "\n", root_word(schema),
               buf_c(&text));
  buf_deinit(&text);
}

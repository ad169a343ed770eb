#include "provider/schema_prompt.h"

#include "format/json_write.h"

#include <stdlib.h>

void schema_prompt_append(struct buf *prompt, const json_t *schema) {
  char *text = json_dump_text(schema, JSON_INDENT(2));
  buf_printf(
      prompt,
      "%s\n---\n\nReply with a single JSON object that is valid against this JSON Schema, and "
      "with nothing else: no words before or after it, no comments.\n\n```json\n%s\n```\n",
      prompt->n > 0 && prompt->p[prompt->n - 1] == '\n' ? "" : "\n", text ? text : "{}");
  free(text);
}

/* Puts a JSON Schema at the end of a prompt. */
#include "provider/schema_prompt.h"

#include "base/log.h"
#include "format/json_write.h"

#include <string.h>

static bool shows(const struct buf *prompt, struct str text) {
  return prompt->n > 0 && memmem(prompt->p, prompt->n, text.p, text.n) != NULL;
}

void schema_prompt_append(struct buf *prompt, const struct call_request *request) {
  struct schema *schema = schema_compile(request->schema, NULL, NULL, NULL);
  struct buf words = {0}, json = {0}; /* a user's own template may show either */
  if (schema == NULL)
    BUG("a call asks for a schema that does not compile");
  describe_request(schema, request->schema_as, request->language, &words);
  json_write(request->schema, &json);
  struct str told = str_trim(buf_view(&words));
  if (!shows(prompt, told) && !shows(prompt, buf_view(&json))) {
    bool ended = prompt->n > 0 && prompt->p[prompt->n - 1] == '\n';
    buf_puts(prompt, ended ? "\n---\n\n" : "\n\n---\n\n");
    buf_str(prompt, told);
    buf_putc(prompt, '\n');
  }
  buf_deinit(&json);
  buf_deinit(&words);
  schema_free(schema);
}

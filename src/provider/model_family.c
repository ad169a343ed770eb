/* Tells which models are of one family. */
#include "provider/model_family.h"

#include "base/buf.h"
#include "base/resource.h"

/* Returns the family of a word of this kind, "provider" or "model", by the table families.txt; n 0:
 * it names none. */
static struct str family_named(const char *kind, struct str word) {
  const struct resource *table = resource_find("provider/families.txt");
  struct str rest = {table->p, table->n};
  while (rest.n > 0) {
    struct str line = str_next_line(&rest), of = str_cut(&line, ' '), name = str_cut(&line, ' ');
    if (str_eq_c(of, kind) && str_eq(name, word))
      return line;
  }
  return (struct str){NULL, 0};
}

/* Puts the letters that a model's name begins with, behind the maker's: "meta/Llama-3" is llama. */
static void put_model_word(struct str model, struct buf *out) {
  size_t from = model.n;
  while (from > 0 && model.p[from - 1] != '/')
    from--;
  for (; from < model.n; from++) {
    char c = model.p[from];
    if (c >= 'A' && c <= 'Z')
      c = (char)(c - 'A' + 'a');
    if (c < 'a' || c > 'z')
      return;
    buf_putc(out, c);
  }
}

static void put_family(struct str provider, struct str model, struct buf *out) {
  struct str known = family_named("provider", provider);
  if (known.n == 0) {
    put_model_word(model, out);
    known = family_named("model", buf_view(out));
  }
  if (known.n > 0) {
    buf_set(out, known);
  }
  if (out->n == 0)
    buf_str(out, provider);
}

bool model_family_is_same(struct str provider, struct str model, struct str other_provider,
                          struct str other_model) {
  buf_auto_t one = {0}, other = {0};
  if (provider.n == 0 || other_provider.n == 0)
    return false;
  if (str_eq(provider, other_provider) && (model.n == 0 || other_model.n == 0))
    return true;
  put_family(provider, model, &one);
  put_family(other_provider, other_model, &other);
  return str_eq(buf_view(&one), buf_view(&other));
}

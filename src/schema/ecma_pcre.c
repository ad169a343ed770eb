/* Writes ECMA-262 patterns in PCRE2's syntax. Where the two differ (\s, ., names of properties),
 * the result means what ECMA-262 says. */
#include "schema/ecma.h"

#include <string.h>

/* Maps the long names of ECMA-262 to PCRE2's. */
static const char *const categories[][2] = {
    {"Cased_Letter", "L&"},
    {"Close_Punctuation", "Pe"},
    {"Combining_Mark", "M"},
    {"Connector_Punctuation", "Pc"},
    {"Control", "Cc"},
    {"Currency_Symbol", "Sc"},
    {"Dash_Punctuation", "Pd"},
    {"Decimal_Number", "Nd"},
    {"Enclosing_Mark", "Me"},
    {"Final_Punctuation", "Pf"},
    {"Format", "Cf"},
    {"Initial_Punctuation", "Pi"},
    {"LC", "L&"},
    {"Letter", "L"},
    {"Letter_Number", "Nl"},
    {"Line_Separator", "Zl"},
    {"Lowercase_Letter", "Ll"},
    {"Mark", "M"},
    {"Math_Symbol", "Sm"},
    {"Modifier_Letter", "Lm"},
    {"Modifier_Symbol", "Sk"},
    {"Nonspacing_Mark", "Mn"},
    {"Number", "N"},
    {"Open_Punctuation", "Ps"},
    {"Other", "C"},
    {"Other_Letter", "Lo"},
    {"Other_Number", "No"},
    {"Other_Punctuation", "Po"},
    {"Other_Symbol", "So"},
    {"Paragraph_Separator", "Zp"},
    {"Private_Use", "Co"},
    {"Punctuation", "P"},
    {"Separator", "Z"},
    {"Space_Separator", "Zs"},
    {"Spacing_Mark", "Mc"},
    {"Surrogate", "Cs"},
    {"Symbol", "S"},
    {"Titlecase_Letter", "Lt"},
    {"Unassigned", "Cn"},
    {"Uppercase_Letter", "Lu"},
    {"cntrl", "Cc"},
    {"digit", "Nd"},
    {"punct", "P"},
};

static void pcre_character(uint32_t c, struct buf *out) {
  if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
    buf_putc(out, (char)c);
  else
    buf_printf(out, "\\x{%x}", (unsigned)c);
}

static void pcre_property(const struct ecma_member *member, struct buf *out) {
  struct str name = member->name;
  for (size_t i = 0; i < sizeof categories / sizeof *categories && !*member->scheme; i++)
    if (str_eq_c(member->name, categories[i][0]))
      name = str_from(categories[i][1]);
  buf_printf(out, "\\%c{%s" STR_FMT "}", member->set, member->scheme, STR_ARG(name));
}

static void pcre_member(const struct ecma_member *member, struct buf *out) {
  struct ecma_range ranges[ECMA_MEMBER_RANGES];
  size_t n = ecma_member_ranges(member, ranges);
  if (n == 0) {
    pcre_property(member, out);
    return;
  }
  /* PCRE2 has them too, and matches them faster than ranges */
  if (member->set && strchr("DwW", member->set)) {
    buf_printf(out, "\\%c", member->set);
    return;
  }
  for (size_t i = 0; i < n; i++) {
    pcre_character(ranges[i].low, out);
    if (ranges[i].high == ranges[i].low)
      continue;
    buf_putc(out, '-');
    pcre_character(ranges[i].high, out);
  }
}

static void pcre_class(const struct ecma_node *node, struct buf *out) {
  const struct ecma_member *only = node->members && !node->members->next ? node->members : NULL;
  if (!node->members) {
    buf_puts(out, node->negated ? "[\\x{0}-\\x{10ffff}]" : "(?!)");
    return;
  }
  if (only && !node->negated && !only->set && only->range.low == only->range.high) {
    pcre_character(only->range.low, out);
    return;
  }
  buf_puts(out, node->negated ? "[^" : "[");
  for (const struct ecma_member *member = node->members; member; member = member->next)
    pcre_member(member, out);
  buf_putc(out, ']');
}

static void pcre_node(const struct ecma_node *node, bool repeated, struct buf *out);

static void pcre_kids(const struct ecma_node *node, const char *between, struct buf *out) {
  for (const struct ecma_node *kid = node->kids; kid; kid = kid->next) {
    pcre_node(kid, false, out);
    if (kid->next)
      buf_puts(out, between);
  }
}

/* Writes a node that is alone or inside parentheses: alternatives need none there. */
static void pcre_inside(const struct ecma_node *node, struct buf *out) {
  if (node->kind == ECMA_ALT)
    pcre_kids(node, "|", out);
  else
    pcre_node(node, false, out);
}

static void pcre_group(const char *open, const struct ecma_node *node, struct buf *out) {
  buf_puts(out, open);
  pcre_inside(node, out);
  buf_putc(out, ')');
}

static void pcre_look(const struct ecma_node *node, struct buf *out) {
  if (node->behind)
    pcre_group(node->negated ? "(?<!" : "(?<=", node->kids, out);
  else
    pcre_group(node->negated ? "(?!" : "(?=", node->kids, out);
}

static void pcre_repeat(const struct ecma_node *node, struct buf *out) {
  pcre_node(node->kids, true, out);
  if (node->max == ECMA_NO_END)
    buf_printf(out, "{%u,}", (unsigned)node->min);
  else
    buf_printf(out, "{%u,%u}", (unsigned)node->min, (unsigned)node->max);
  buf_puts(out, node->lazy ? "?" : "");
}

/* Writes a node. `repeated`: it must come out as a single item. */
static void pcre_node(const struct ecma_node *node, bool repeated, struct buf *out) {
  switch (node->kind) {
  case ECMA_SEQ:
    if (repeated)
      pcre_group("(?:", node, out);
    else
      pcre_kids(node, "", out);
    return;
  case ECMA_ALT:
    pcre_group("(?:", node, out);
    return;
  case ECMA_CLASS:
    pcre_class(node, out);
    return;
  case ECMA_REPEAT:
    pcre_repeat(node, out);
    return;
  case ECMA_GROUP:
    pcre_group("(", node->kids, out);
    return;
  case ECMA_BACK:
    buf_printf(out, "\\g{%u}", (unsigned)node->number);
    return;
  case ECMA_LOOK:
    pcre_look(node, out);
    return;
  case ECMA_BEGIN:
    buf_putc(out, '^');
    return;
  case ECMA_END:
    buf_putc(out, '$');
    return;
  case ECMA_EDGE:
    buf_puts(out, node->negated ? "\\B" : "\\b");
    return;
  }
}

void ecma_to_pcre(const struct ecma_node *root, struct buf *out) {
  buf_puts(out, "");
  pcre_inside(root, out);
}

/* Holds formats as patterns: whatever one matches, the asserting validator takes. */
#include "gbnf/internal.h"

#define TIME                                                                                       \
  "(([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)"             \
  "|23:59:60(\\.\\d{1,9})?Z)"
#define LEAP_YEAR "(\\d\\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
#define DATE                                                                                       \
  "(\\d{4}-(0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|\\d{4}-(0[469]|11)-(0[1-9]|[12]\\d|30)"         \
  "|\\d{4}-02-(0[1-9]|1\\d|2[0-8])|" LEAP_YEAR "-02-29)"
#define N      "\\d{1,10}"
#define CLOCK  "(" N "H(" N "M(" N "S)?)?|" N "M(" N "S)?|" N "S)"
#define LABEL  "[A-Za-z0-9]+(-[A-Za-z0-9]+)*"
#define HOST   LABEL "(\\." LABEL ")*"
#define ATOM   "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
#define BYTE   "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define IPV4   BYTE "\\." BYTE "\\." BYTE "\\." BYTE
#define H      "[0-9A-Fa-f]{1,4}"
#define LAST32 "(" H ":" H "|" IPV4 ")"
#define IPV6                                                                                       \
  "((" H ":){6}" LAST32 "|::(" H ":){5}" LAST32 "|(" H ")?::(" H ":){4}" LAST32 "|((" H            \
  ":){0,1}" H ")?::(" H ":){3}" LAST32 "|((" H ":){0,2}" H ")?::(" H ":){2}" LAST32 "|((" H        \
  ":){0,3}" H ")?::" H ":" LAST32 "|((" H ":){0,4}" H ")?::" LAST32 "|((" H ":){0,5}" H ")?::" H   \
  "|((" H ":){0,6}" H ")?::)"
/* These follow RFC 3986, without addresses in brackets. X is what else a character may be. */
#define ESCAPED      "%[0-9A-Fa-f]{2}"
#define NAME(X)      "([A-Za-z0-9._~!$&'()*+,;=" X "-]|" ESCAPED ")"
#define PCHAR(X)     NAME(":@" X)
#define REST(X)      "(/" PCHAR(X) "*)*"
#define AUTHORITY(X) "//(" NAME(":" X) "*@)?" NAME(X) "*(:\\d*)?" REST(X)
#define TAIL(X)      "(\\?(" PCHAR(X) "|[/?])*)?(#(" PCHAR(X) "|[/?])*)?"
#define ROOTED(X)    "/(" PCHAR(X) "+" REST(X) ")?"
#define URI(X)                                                                                     \
  "[A-Za-z][A-Za-z0-9+.-]*:(" AUTHORITY(X) "|" ROOTED(X) "|" PCHAR(X) "+" REST(X) ")?" TAIL(X)
#define RELATIVE(X) "(" AUTHORITY(X) "|" ROOTED(X) "|" NAME("@" X) "+" REST(X) ")?" TAIL(X)
#define FOREIGN     "\\u00A0-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFEF"
#define POINTER     "(/([^/~]|~[01])*)*"

static const struct {
  const char *format, *pattern;
  bool whole;
} formats[] = {
    {"date", "^" DATE "$", true},
    {"time", "^" TIME "$", true},
    {"date-time", "^" DATE "T" TIME "$", true},
    {"duration",
     "^P(" N "W|(" N "Y(" N "M(" N "D)?)?|" N "M(" N "D)?|" N "D)(T" CLOCK ")?|T" CLOCK ")$", true},
    {"uuid", "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$", true},
    {"ipv4", "^" IPV4 "$", true},
    {"ipv6", "^" IPV6 "$", true},
    {"hostname", "^" HOST "$", false},
    {"email", "^" ATOM "(\\." ATOM ")*@" HOST "$", false},
    {"uri", "^" URI("") "$", true},
    {"uri-reference", "^(" URI("") "|" RELATIVE("") ")$", true},
    {"iri", "^" URI(FOREIGN) "$", true},
    {"iri-reference", "^(" URI(FOREIGN) "|" RELATIVE(FOREIGN) ")$", true},
    {"json-pointer", "^" POINTER "$", true},
    {"relative-json-pointer", "^(0|[1-9]\\d*)(#|" POINTER ")$", true},
};

const char *gb_format_pattern(const char *format, bool *whole) {
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (!strcmp(format, formats[i].format)) {
      *whole = formats[i].whole;
      return formats[i].pattern;
    }
  return NULL;
}

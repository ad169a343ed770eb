/* Holds every word that a rendering says, in each language. */
#include "render/describe_words.h"

#include <assert.h>

static const char *const words[][WORD_COUNT] = {
    [DESCRIBE_ENGLISH] =
        {
            [WORD_RETURN] = "Return one JSON {} of the structure below. Write JSON only: no other "
                            "text, no code fence.",
            [WORD_RETURN_PLAIN] = "Return one JSON {}. Write JSON only: no other text, no code "
                                  "fence.",
            [WORD_NULL_ONLY] = "Use null only where it is allowed: {}.",
            [WORD_RETURN_SCHEMA] = "Return one JSON {} that fits the JSON Schema below. Write JSON "
                                   "only: no other text, no code fence. Do not repeat the schema.",
            [WORD_NULL_MARKED] = "Use null only where the type says \"or null\".",
            [WORD_NULL_TYPED] = "Use null only where it is allowed.",
            [WORD_NULL_NEVER] = "Do not use null.",
            [WORD_NULL_WHOLE] = "the whole answer",
            [WORD_MAY_LEAVE_OUT] = "Leave an optional field out when its value is not known.",
            [WORD_NO_INVENTING] = "Do not invent anything.",
            [WORD_EXAMPLE] = "An answer has this form; its values are placeholders:",
            [WORD_REQUIRED] = "required",
            [WORD_OPTIONAL] = "optional",
            [WORD_WHOLE] = "the answer",
            [WORD_EACH_ITEM] = "each item",
            [WORD_EACH_FURTHER_ITEM] = "each further item",
            [WORD_ITEM] = "item {}",
            [WORD_ANY_OTHER_FIELD] = "any other field",
            [WORD_ANY_OTHER_ITEM] = "any other item",
            [WORD_FIELD_MATCHING] = "each field whose name matches {}",
            [WORD_FIELD_NAMES] = "each field name",
            [WORD_CONTAINED] = "contained item",
            [WORD_FORM] = "form {}",
            [WORD_FORMS_ANY] = "at least one of these forms",
            [WORD_FORMS_ONE] = "exactly one of these forms",
            [WORD_NOT] = "not",
            [WORD_IF] = "if",
            [WORD_THEN] = "then",
            [WORD_ELSE] = "else",
            [WORD_WITH_FIELD] = "if {} is present",
            [WORD_SAME_AS] = "same structure as {}",
            [WORD_OR] = " or ",
            [WORD_OBJECT] = "object",
            [WORD_ARRAY] = "array",
            [WORD_STRING] = "string",
            [WORD_NUMBER] = "number",
            [WORD_INTEGER] = "integer",
            [WORD_BOOLEAN] = "boolean",
            [WORD_NULL] = "null",
            [WORD_VALUE] = "value",
            [WORD_ANY_VALUE] = "any value",
            [WORD_NOTHING] = "no value is possible",
            [WORD_ONE_OF] = "one of: {}",
            [WORD_CONST] = "always {}",
            [WORD_MULTIPLE_OF] = "multiple of {}",
            [WORD_MIN_LENGTH] = "at least {} {character|characters}",
            [WORD_MAX_LENGTH] = "at most {} {character|characters}",
            [WORD_PATTERN] = "pattern: {}",
            [WORD_FORMAT] = "format: {}",
            [WORD_ENCODING] = "encoding: {}",
            [WORD_MEDIA_TYPE] = "media type: {}",
            [WORD_MIN_ITEMS] = "at least {} {item|items}",
            [WORD_MAX_ITEMS] = "at most {} {item|items}",
            [WORD_UNIQUE] = "no two items equal",
            [WORD_NO_OTHER_ITEMS] = "no other items",
            [WORD_NO_ITEMS] = "no items",
            [WORD_MIN_CONTAINS] = "at least {} contained {item|items}",
            [WORD_MAX_CONTAINS] = "at most {} contained {item|items}",
            [WORD_CONTAINS] = "contained item: {}",
            [WORD_MIN_FIELDS] = "at least {} {field|fields}",
            [WORD_MAX_FIELDS] = "at most {} {field|fields}",
            [WORD_NO_OTHER_FIELDS] = "no other fields",
            [WORD_NO_FIELD_MATCHING] = "no field whose name matches {}",
            [WORD_MUST_HAVE] = "must have {}",
            [WORD_WITH_MUST_HAVE] = "must have {}",
            [WORD_WITH_FORBIDDEN] = "must not have {}",
            [WORD_FORBIDDEN] = "must not have {}",
        },
    [DESCRIBE_JAPANESE] =
        {
            [WORD_RETURN] = "次の構造の JSON の{}を一つだけ返してください。JSON "
                            "だけを書き、ほかの文章やコードフェンスは付けないでください。",
            [WORD_RETURN_PLAIN] = "JSON の{}を一つだけ返してください。JSON "
                                  "だけを書き、ほかの文章やコードフェンスは付けないでください。",
            [WORD_NULL_ONLY] = "null を使えるのは次だけです: {}。",
            [WORD_RETURN_SCHEMA] =
                "次の JSON Schema に合う JSON の{}を一つだけ返してください。JSON "
                "だけを書き、ほかの文章やコードフェンスは付けないでください。"
                "スキーマを繰り返さないでください。",
            [WORD_NULL_MARKED] = "null を使えるのは、型に「または null」とある所だけです。",
            [WORD_NULL_TYPED] = "null は許されている所だけで使ってください。",
            [WORD_NULL_NEVER] = "null は使わないでください。",
            [WORD_NULL_WHOLE] = "回答全体",
            [WORD_MAY_LEAVE_OUT] = "任意のフィールドは、値が分からなければ省いてください。",
            [WORD_NO_INVENTING] = "何も作り出さないでください。",
            [WORD_EXAMPLE] = "回答は次の形です。値は仮のものです:",
            [WORD_REQUIRED] = "必須",
            [WORD_OPTIONAL] = "任意",
            [WORD_WHOLE] = "回答",
            [WORD_EACH_ITEM] = "各要素",
            [WORD_EACH_FURTHER_ITEM] = "それ以降の各要素",
            [WORD_ITEM] = "要素 {}",
            [WORD_ANY_OTHER_FIELD] = "ほかの各フィールド",
            [WORD_ANY_OTHER_ITEM] = "ほかの各要素",
            [WORD_FIELD_MATCHING] = "名前が {} に一致する各フィールド",
            [WORD_FIELD_NAMES] = "各フィールド名",
            [WORD_CONTAINED] = "含む要素",
            [WORD_FORM] = "形 {}",
            [WORD_FORMS_ANY] = "次の形の少なくとも一つ",
            [WORD_FORMS_ONE] = "次の形のちょうど一つ",
            [WORD_NOT] = "次であってはならない",
            [WORD_IF] = "もし",
            [WORD_THEN] = "ならば",
            [WORD_ELSE] = "でなければ",
            [WORD_WITH_FIELD] = "{} があるとき",
            [WORD_SAME_AS] = "{} と同じ構造",
            [WORD_OR] = " または ",
            [WORD_OBJECT] = "オブジェクト",
            [WORD_ARRAY] = "配列",
            [WORD_STRING] = "文字列",
            [WORD_NUMBER] = "数値",
            [WORD_INTEGER] = "整数",
            [WORD_BOOLEAN] = "真偽値",
            [WORD_NULL] = "null",
            [WORD_VALUE] = "値",
            [WORD_ANY_VALUE] = "任意の値",
            [WORD_NOTHING] = "ありうる値なし",
            [WORD_ONE_OF] = "次のいずれか: {}",
            [WORD_CONST] = "常に {}",
            [WORD_MULTIPLE_OF] = "{} の倍数",
            [WORD_MIN_LENGTH] = "{} 文字以上",
            [WORD_MAX_LENGTH] = "{} 文字以下",
            [WORD_PATTERN] = "正規表現: {}",
            [WORD_FORMAT] = "書式: {}",
            [WORD_ENCODING] = "符号化: {}",
            [WORD_MEDIA_TYPE] = "メディアタイプ: {}",
            [WORD_MIN_ITEMS] = "要素 {} 個以上",
            [WORD_MAX_ITEMS] = "要素 {} 個以下",
            [WORD_UNIQUE] = "等しい要素なし",
            [WORD_NO_OTHER_ITEMS] = "ほかの要素なし",
            [WORD_NO_ITEMS] = "要素なし",
            [WORD_MIN_CONTAINS] = "含む要素 {} 個以上",
            [WORD_MAX_CONTAINS] = "含む要素 {} 個以下",
            [WORD_CONTAINS] = "含む要素: {}",
            [WORD_MIN_FIELDS] = "フィールド {} 個以上",
            [WORD_MAX_FIELDS] = "フィールド {} 個以下",
            [WORD_NO_OTHER_FIELDS] = "ほかのフィールドなし",
            [WORD_NO_FIELD_MATCHING] = "名前が {} に一致するフィールドなし",
            [WORD_MUST_HAVE] = "{} が必要",
            [WORD_WITH_MUST_HAVE] = "{} も必要",
            [WORD_WITH_FORBIDDEN] = "{} は不可",
            [WORD_FORBIDDEN] = "{} は不可",
        },
    /* A word that is missing here is as in English. */
    [DESCRIBE_TERSE] =
        {
            [WORD_FORMS_ANY] = "any of",
            [WORD_FORMS_ONE] = "exactly one of",
            [WORD_FIELD_NAMES] = "names",
            [WORD_MIN_LENGTH] = "length >= {}",
            [WORD_MAX_LENGTH] = "length <= {}",
            [WORD_MIN_ITEMS] = "items >= {}",
            [WORD_MAX_ITEMS] = "items <= {}",
            [WORD_UNIQUE] = "unique items",
            [WORD_MIN_CONTAINS] = "contained items >= {}",
            [WORD_MAX_CONTAINS] = "contained items <= {}",
            [WORD_MIN_FIELDS] = "fields >= {}",
            [WORD_MAX_FIELDS] = "fields <= {}",
        },
};

void describe_say(enum describe_language language, enum word word, const char *argument,
                  struct buf *out) {
  assert(word < WORD_COUNT && argument != NULL);
  const char *said = words[language][word];
  for (const char *p = said ? said : words[DESCRIBE_ENGLISH][word]; *p;) {
    const char *brace = strchr(p, '{'), *close = brace ? strchr(brace, '}') : NULL;
    if (!brace || !close) {
      buf_puts(out, p);
      return;
    }
    buf_append(out, p, (size_t)(brace - p));
    const char *bar = memchr(brace, '|', (size_t)(close - brace));
    if (!bar)
      buf_puts(out, argument);
    else if (!strcmp(argument, "1"))
      buf_append(out, brace + 1, (size_t)(bar - brace - 1));
    else
      buf_append(out, bar + 1, (size_t)(close - bar - 1));
    p = close + 1;
  }
}

bool describe_language_find(const char *name, enum describe_language *language) {
  static const char *const names[] = {[DESCRIBE_ENGLISH] = "en", [DESCRIBE_JAPANESE] = "ja"};
  int i = str_index(str_from(name), names, ARRAY_LEN(names));
  if (i >= 0)
    *language = (enum describe_language)i;
  return i >= 0;
}

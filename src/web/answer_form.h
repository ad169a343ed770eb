/* answer_form.h - writes the fields of an answer that a schema describes: one for each property
 * with a plain form (a text, a number, yes or no, one of several), and a JSON field for any other.
 *
 * page.mjs puts them together: data-key is the property as JSON, data-form says how the field's
 * value becomes JSON (text, or json: it already is JSON). The daemon checks the answer. */
#ifndef SEGUE_WEB_ANSWER_FORM_H
#define SEGUE_WEB_ANSWER_FORM_H

#include "web/html.h"

#include <jansson.h>

void answer_form_fields(struct html *h, const json_t *schema);

#endif

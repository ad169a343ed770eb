/* Tests which answers say nothing. */
#include "extract/whole_reply.h"

#include "base/err.h"
#include "support/test.h"

TEST(reasoning_alone_says_nothing) {
  static const char *const silent[] = {"",
                                       " \n\t\r\n",
                                       "<think>I end with 1.</think>",
                                       "\n<think>a</think>\n <thinking>b</thinking>\n",
                                       "<think>cut",
                                       "thought\n</think>",
                                       "[THINK]a[/THINK]",
                                       "<|channel|>analysis<|message|>hm"};
  static const char *const said[] = {"no",  "<think>a</think>no",      "a </think> b", "<b>",
                                     "[x]", "<think>a</think>\n<think"};
  for (size_t i = 0; i < ARRAY_LEN(silent); i++)
    if (!extract_says_nothing(str_from(silent[i])))
      fail_msg("%s", silent[i]);
  for (size_t i = 0; i < ARRAY_LEN(said); i++)
    if (extract_says_nothing(str_from(said[i])))
      fail_msg("%s", said[i]);
}

/* pattern_sample.h - makes texts that an ECMA-262 pattern is likely to match.
 *
 * A sample follows the pattern's own parts: each alternative, class and repetition is chosen by
 * `seed`. Seed 0 takes the first alternative, plain letters and the fewest repetitions; others
 * vary. Look-ahead, look-behind and \b are not solved, so the caller must check each sample with
 * the pattern itself and try another seed.
 */
#ifndef SEGUE_RENDER_PATTERN_SAMPLE_H
#define SEGUE_RENDER_PATTERN_SAMPLE_H

#include "schema/support.h"

/* `extra`: repetitions added to each part that can be repeated without end. Appends to `out`; false
 * if the pattern cannot be read or the sample grows beyond `most` bytes. */
bool pattern_sample(const char *pattern, size_t length, uint32_t seed, size_t extra, size_t most,
                    struct buf *out);

#endif

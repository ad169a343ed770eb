/* clock.h - the one place that reads the system's clocks.
 *
 * Times shown to people and written to logs are real time, which can be set back. Measuring and
 * waiting use monotonic time. A loop's own time (uv_now) is monotonic too, as of its last
 * iteration. */
#ifndef SEGUE_OS_CLOCK_H
#define SEGUE_OS_CLOCK_H

#include <stdint.h>

int64_t clock_real_ms(void); /* since 1970, UTC */
uint64_t clock_mono_ms(void);
uint64_t clock_mono_us(void);
uint64_t clock_boot_ms(void); /* monotonic, and goes on while the machine is suspended */

#endif

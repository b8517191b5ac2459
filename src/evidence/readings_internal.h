#pragma once
/* What the parts of readings have in common. */

#include "evidence/readings.h"

/* Gives one decoded piece to the caller's next level. */
typedef int reading_found(void *context, const char *kind, const char *text, size_t size,
                          struct error **err);

/* Runs of digits of base64 (both alphabets) and hexadecimal, wrapped or quoted line by line. */
must_check int reading_digits(const char *text, size_t size, reading_found *found, void *context,
                              struct error **err) nonnull(1, 3);
/* Bytes in hexadecimal one by one: "41 42", "0x41, 0x42", "41:42". */
must_check int reading_spaced_hex(const char *text, size_t size, reading_found *found,
                                  void *context, struct error **err) nonnull(1, 3);

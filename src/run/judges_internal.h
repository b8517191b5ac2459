#pragma once
/*
 * Where a judgement lies in its trial's directory.
 */

#include "base/base.h"

/* "grade/judge-<16 digits>.json" of its key; owned. */
char *judgement_path(const char *key) malloc_like nonnull(1);

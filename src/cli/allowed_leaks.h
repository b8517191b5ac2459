#pragma once
/*
 * allowed_leaks: what --allow-leak says: findings of the leak scan that are meant.
 */

#include "base/str.h"
#include "cli/options.h"

/* ERROR_USER for what is not ID=REASON. */
must_check int allowed_leaks_read(const struct option_list *given, struct str_list *ret,
                                  struct error **err) nonnull(1, 2);

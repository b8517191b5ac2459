#pragma once
/*
 * confine: what the broker takes from itself before it hears the first word of a cell.
 */

#include "base/error.h"

/*
 * From here on the process opens, makes, removes and runs no file; what is open stays. Its memory
 * is nobody's of its own user. ERROR_SYSTEM when that cannot be had.
 */
must_check int broker_confine(struct error **err);

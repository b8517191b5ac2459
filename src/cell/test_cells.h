#pragma once
/*
 * test_cells: what every test program of cells has: one monitor for each test, and a word for an
 * error that should not be there. To be included after cmocka.h.
 */

#include "cell/fixture.h"

static struct fixture fixture;
static enum cell_driver driver; /* CELL_NATIVE unless a program says otherwise */

/* The message of an error that should not be there. */
static inline void assert_done(int r, struct error **err)
{
    if (r < 0)
        fail_msg("%s", *err != NULL ? error_message(*err) : "failed without a word");
}

static inline int open_fixture(void **state)
{
    struct error *err = NULL;

    (void)state;
    assert_done(fixture_open(&fixture, driver, &err), &err);
    return 0;
}

static inline int close_fixture(void **state)
{
    (void)state;
    fixture_close(&fixture);
    return 0;
}

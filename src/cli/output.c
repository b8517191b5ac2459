#include "cli/output.h"

#include <sys/ioctl.h>

#include "base/str.h"
#include "cli/print.h"
#include "report/report.h"
#include "report/suites.h"

const char *const output_colour_choices[] = {"auto", "always", "never", NULL};

int output_json(const json_t *json, struct error **err)
{
    scoped(buf_done) struct buf text = {0};

    report_json_write(&text, json);
    return print_out(&text, err);
}

int output_save_suites(struct run_dir *run, const struct run_trials *trials, struct error **err)
{
    scoped(suites_done) struct suites suites = {0};
    scoped(json_freep) json_t *json = NULL;

    suites_make(trials, &suites);
    json = suites_json(&suites);
    return run_dir_save_suites(run, json, err);
}

bool output_colour(const char *choice, int fd)
{
    const char *term = getenv("TERM");
    const char *no_colour = getenv("NO_COLOR");

    if (choice != NULL && !str_equal(choice, "auto"))
        return str_equal(choice, "always");
    return isatty(fd) && (no_colour == NULL || no_colour[0] == 0) && !str_equal(term, "dumb");
}

unsigned output_columns(int fd)
{
    struct winsize size = {0};

    return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

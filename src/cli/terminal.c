#include "cli/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>

#include "base/fs.h"
#include "base/mem.h"

bool terminal_is_interactive(void)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

static int open_pair(struct terminal *terminal, struct error **err)
{
    int unlock = 0;
    unsigned number = 0;

    terminal->master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal->master < 0 || ioctl(terminal->master, TIOCSPTLCK, &unlock) != 0 ||
        ioctl(terminal->master, TIOCGPTN, &number) != 0)
        return error_errno(err, errno, "cannot open a pseudo-terminal");
    terminal->slave = ioctl(terminal->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal->slave < 0)
        return error_errno(err, errno, "cannot open a pseudo-terminal");
    return 0;
}

int terminal_open(struct terminal *ret, struct error **err)
{
    struct terminal terminal = {.master = -1, .slave = -1, .typist = -1};
    struct winsize size;
    struct termios settings;
    int r = open_pair(&terminal, err);

    if (r < 0) {
        terminal_close(&terminal);
        return r;
    }
    if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0)
        (void)ioctl(terminal.master, TIOCSWINSZ, &size); /* the default size works, too */
    if (tcgetattr(STDIN_FILENO, &settings) == 0) {
        terminal.saved = mem_dup(&settings, sizeof(settings));
        cfmakeraw(&settings);
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &settings); /* a cooked relay works, too */
    }
    *ret = terminal;
    return 0;
}

static _Noreturn void type_keys(int master)
{
    char keys[1024];
    ssize_t n;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* terminal_close() ends it otherwise */
    while ((n = read(STDIN_FILENO, keys, sizeof(keys))) > 0)
        if (write(master, keys, (size_t)n) != n)
            break;
    _exit(0);
}

int terminal_relay(struct terminal *terminal, struct error **err)
{
    fd_closep(&terminal->slave);
    terminal->typist = fork();
    if (terminal->typist < 0)
        return error_errno(err, errno, "cannot start a process");
    if (terminal->typist == 0)
        type_keys(terminal->master);
    return 0;
}

void terminal_close(struct terminal *terminal)
{
    if (terminal->typist > 0) {
        (void)kill(terminal->typist, SIGKILL);
        (void)waitpid(terminal->typist, NULL, 0);
    }
    if (terminal->saved != NULL)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, terminal->saved); /* nothing else can be done */
    mem_freep(&terminal->saved);
    fd_closep(&terminal->master);
    fd_closep(&terminal->slave);
    terminal->typist = -1;
}

void terminal_echo(void *context, const char *bytes, size_t size)
{
    (void)context;
    while (size > 0) {
        ssize_t n = write(STDOUT_FILENO, bytes, size);

        if (n <= 0)
            return; /* nobody reads any more */
        bytes += n;
        size -= (size_t)n;
    }
}

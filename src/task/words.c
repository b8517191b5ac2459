/* A command line in one text, split into words as a shell would, and nothing else of a shell. */
#include "task/internal.h"

bool words_split(const char *text, struct str_list *ret)
{
    scoped(buf_done) struct buf word = {0};
    bool in_word = false;
    char quote = '\0';

    for (const char *s = text; *s != '\0'; s++) {
        bool blank = *s == ' ' || *s == '\t' || *s == '\n' || *s == '\r';

        if (quote == '\0' && blank) {
            if (in_word)
                str_list_add(ret, buf_text(&word));
            buf_clear(&word);
            in_word = false;
            continue;
        }
        in_word = true;
        if (*s == quote) {
            quote = '\0';
            continue;
        }
        if (quote == '\0' && (*s == '\'' || *s == '"')) {
            quote = *s;
            continue;
        }
        if (*s == '\\' && quote != '\'' && s[1] != '\0')
            s++;
        buf_char(&word, *s);
    }
    if (in_word)
        str_list_add(ret, buf_text(&word));
    return quote == '\0';
}

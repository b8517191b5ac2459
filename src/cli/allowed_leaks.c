#include "cli/allowed_leaks.h"

#include "evidence/leaks.h"

/* "ID=REASON": an id is twelve digits of hexadecimal, as the refusal and `scan` print it. */
int allowed_leaks_read(const struct option_list *given, struct str_list *ret, struct error **err)
{
    for (size_t i = 0; i < given->count; i++) {
        const char *item = given->items[i];
        size_t digits = strspn(item, "0123456789abcdef");

        if (digits != LEAK_ID_CHARS || item[digits] != '=' || item[digits + 1] == '\0')
            return error_set(err, ERROR_USER,
                             "--allow-leak '%s': expected ID=REASON, the id as 'closedbook scan' "
                             "prints it, and why it is allowed",
                             item);
        str_list_add(ret, item);
    }
    return 0;
}

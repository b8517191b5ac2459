/* requires: the versions of closedbook and the systems that can run a task. */
#include "task/internal.h"

/* The system that this program runs on. */
static const char host_os[] = "linux";

/* Compares numbers between dots; what one version does not have is 0. */
static int compare_versions(const char *left, const char *right)
{
    while (*left != '\0' || *right != '\0') {
        size_t left_length = strcspn(left, "."), right_length = strcspn(right, ".");
        uint64_t a = 0, b = 0;
        scoped(mem_freep) char *left_part = str_ndup(left, left_length);
        scoped(mem_freep) char *right_part = str_ndup(right, right_length);

        /* What is no number, as in "1.2-rc1", counts as 0. */
        if (!str_to_u64(left_part, &a))
            a = 0;
        if (!str_to_u64(right_part, &b))
            b = 0;
        if (a != b)
            return a < b ? -1 : 1;
        left += left_length + (left[left_length] == '.');
        right += right_length + (right[right_length] == '.');
    }
    return 0;
}

/* One ">= 1.2"; its form has been checked. */
static bool holds(const char *clause, const char *version)
{
    const char *s = clause + strspn(clause, " ");
    size_t length = strspn(s, "<>=");
    const char *number = s + length + strspn(s + length, " ");
    scoped(mem_freep) char *wanted = str_ndup(number, strcspn(number, " "));
    int order = compare_versions(version, wanted);

    if (length == 0 || s[0] == '=')
        return order == 0;
    if (order == 0)
        return s[1] == '=';
    return s[0] == '>' ? order > 0 : order < 0;
}

static bool holds_all(const char *text, const char *version)
{
    for (const char *s = text; *s != '\0';) {
        size_t length = strcspn(s, ",");
        scoped(mem_freep) char *clause = str_ndup(s, length);

        if (!holds(clause, version))
            return false;
        s += length + (s[length] == ',');
    }
    return true;
}

char *requires_unmet(const struct node *requires, const char *version)
{
    const char *versions = node_get_text(requires, "closedbook");
    const char *os = node_get_text(requires, "os");

    if (os != NULL && strcmp(os, host_os) != 0)
        return str_format("requires.os: the task wants %s, this is %s", os, host_os);
    if (versions != NULL && version != NULL && !holds_all(versions, version))
        return str_format("requires.closedbook: the task wants %s, this is %s", versions, version);
    return NULL;
}

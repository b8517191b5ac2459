#pragma once
/*
 * testing: a filled trial record and a temporary directory, for the tests of record/ and report/.
 */

#include "record/record.h"

/* A successful trial with one command criterion and every member set. */
struct trial_record testing_trial(void);
/* Appends a criterion; the texts are copied, details may be NULL. */
struct criterion_record *testing_criterion(struct trial_record *record, const char *type,
                                           const char *description, double score) nonnull(1, 2, 3);

/* A new directory of our own below $TMPDIR or /tmp; owned. testing_remove() takes all of it away.
 */
char *testing_directory(void);
void testing_remove(const char *path) nonnull(1);

/*
 * Runs check(path) in a child on a tmpfs of 64 KiB at path, which its mount namespace alone has.
 * The child's answer: 0 is right. TESTING_NO_MOUNTS where namespaces are not allowed.
 */
#define TESTING_NO_MOUNTS 77
typedef int testing_check(const char *path);
int testing_on_small_disk(testing_check *check) nonnull(1);
/* Runs check(path) in a child that is no root and may not write to path, an empty directory. */
int testing_on_read_only(testing_check *check) nonnull(1);

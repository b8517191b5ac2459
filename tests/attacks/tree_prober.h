#pragma once
/*
 * tree_prober: the prober's questions to the descriptors that a worker is given.
 */

/* Lists, reads and writes what lies at the descriptors from 3 on. */
void probe_trees(void);
/* What a worker that was taken over would try next. */
void probe_worker(void);

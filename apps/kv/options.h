/* SPDX-License-Identifier: MIT */
/* kv/options.h: the command line. */
#ifndef KV_OPTIONS_H
#define KV_OPTIONS_H

/* Fills in `app`. Returns -1 when the program shall go on, else the code it shall exit with; what there is to say has
 * been printed. */
int options_read(int argc, char **argv);

#endif

/* The functions of the engine, by name, once for each instruction set. */
#ifndef OPGROW_TABLE_H
#define OPGROW_TABLE_H

typedef void (*og_function)(void);

typedef struct {
    const char *name;
    og_function function;
} og_entry;

#endif

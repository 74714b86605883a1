/* Predicts stored rows on a chip and writes, for each, the class and, for the first ones, the bits of the scores; at
 * the end the ticks that the predictions took and the most bytes of stack that a call took. */
#include "rows.h" /* the model's header, number_t, N_INPUTS, N_OUTPUTS, N_ROWS, N_SHOWN and the rows */

#include <stdint.h>

#include "platform.h"

static void write_text(const char *text)
{
    while (*text) {
        write_character(*text++);
    }
}

static void write_hexadecimal(uint32_t value)
{
    for (int shift = 28; shift >= 0; shift -= 4) {
        write_character("0123456789abcdef"[(value >> shift) & 15]);
    }
}

/* In a frame of its own, below which the stack is painted. */
static int __attribute__((noinline)) called(const number_t *x, number_t *out, int shown)
{
    if (shown) {
        model_scores(x, out);
        return 0;
    }
    return model_predict(x);
}

int main(void)
{
    static number_t x[N_INPUTS], out[N_OUTPUTS];
    uint32_t ticks = 0;
    uint16_t deepest = 0;
    start();
    for (uint32_t row = 0; row < N_ROWS; row++) {
        uint32_t before;
        int label;
        read_row(x, row);
        paint_stack();
        before = now();
        label = called(x, out, 0);
        ticks += elapsed(before);
        if (row < N_SHOWN) {
            called(x, out, 1);
        }
        if (painted_over() > deepest) {
            deepest = painted_over();
        }
        write_text("row ");
        write_hexadecimal((uint32_t)label);
        for (int j = 0; j < N_OUTPUTS && row < N_SHOWN; j++) {
            union {
                number_t number;
                uint32_t bits;
            } both;
            both.number = out[j];
            write_character(' ');
            write_hexadecimal(both.bits);
        }
        write_character('\n');
    }
    write_text("ticks ");
    write_hexadecimal(ticks);
    write_text(" stack ");
    write_hexadecimal(deepest);
    write_character('\n');
    finish();
    return 0;
}

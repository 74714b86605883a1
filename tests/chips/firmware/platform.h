/* What differs between chips: where rows are, a clock, a place to write to, and how much stack was used. */
#ifndef PLATFORM_H
#define PLATFORM_H

#include <stdint.h>
#include <string.h>

/* Bytes below the frame of the caller that are filled with a pattern, and how many of these a call has changed. */
#define PAINT 0xa5
#ifndef PAINTED
#define PAINTED 4096
#endif

static uint8_t *painted_end;

static void __attribute__((noinline)) paint_stack(void)
{
    volatile uint8_t here = 0;
    painted_end = (uint8_t *)&here - 16;
    for (volatile uint8_t *p = painted_end - PAINTED; p < painted_end; p++) {
        *p = PAINT;
    }
}

static uint16_t __attribute__((noinline)) painted_over(void)
{
    const volatile uint8_t *p = painted_end - PAINTED;
    while (p < painted_end && *p == PAINT) {
        p++;
    }
    return (uint16_t)(painted_end - p);
}

#if defined(__AVR__)

#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/pgmspace.h>
#include <avr/sleep.h>

/* Timer 1 counts 64 clock cycles. */
static void start(void)
{
    UBRR0 = 0;
    UCSR0A = 1 << U2X0;
    UCSR0B = 1 << TXEN0;
    TCCR1B = 3;
}

static uint32_t now(void)
{
    return TCNT1;
}

static uint32_t elapsed(uint32_t before)
{
    return (uint16_t)(TCNT1 - (uint16_t)before);
}

static void write_character(char character)
{
    while (!(UCSR0A & (1 << UDRE0))) {
    }
    UDR0 = (uint8_t)character;
}

static void finish(void)
{
    write_character('\n');
    cli();
    sleep_mode(); /* with interrupts off, it ends the simulation */
}

static void read_row(number_t *x, uint32_t row)
{
    memcpy_P(x, rows + row * N_INPUTS, N_INPUTS * sizeof *x);
}

#else

static void read_row(number_t *x, uint32_t row)
{
    memcpy(x, rows + row * N_INPUTS, N_INPUTS * sizeof *x);
}

#if defined(__arm__)

extern int main(void);
extern uint32_t stack_top[];

static uint32_t semihosted(uint32_t operation, const void *argument)
{
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static void reset(void)
{
#ifdef __ARM_FP
    *(volatile uint32_t *)0xe000ed88 |= 0xf00000; /* the floating-point unit is off after a reset */
#endif
    main();
}

__attribute__((section(".vectors"), used)) static const void *const vectors[] = {stack_top, (const void *)reset};

/* SysTick counts down from 2^24. */
static void start(void)
{
    *(volatile uint32_t *)0xe000e014 = 0xffffff;
    *(volatile uint32_t *)0xe000e018 = 0;
    *(volatile uint32_t *)0xe000e010 = 5;
}

static uint32_t now(void)
{
    return *(volatile uint32_t *)0xe000e018;
}

static uint32_t elapsed(uint32_t before)
{
    return (before - now()) & 0xffffff;
}

static void write_character(char character)
{
    semihosted(3, &character);
}

static void finish(void)
{
    semihosted(24, (const void *)0x20026);
}

#elif defined(__riscv)

extern int main(void);

__attribute__((naked, section(".vectors"), used)) void _start(void)
{
    __asm__ volatile("la sp, stack_top\n\tcall main");
}

static void start(void)
{
}

/* Instructions: csrr of minstret, which assemblers may know under the name of an extension only. */
static uint32_t now(void)
{
    uint32_t count;
    __asm__ volatile(".insn i 0x73, 2, %0, x0, -1278" : "=r"(count));
    return count;
}

static uint32_t elapsed(uint32_t before)
{
    return now() - before;
}

static void write_character(char character)
{
    *(volatile uint8_t *)0x10000000 = (uint8_t)character;
}

static void finish(void)
{
    *(volatile uint32_t *)0x100000 = 0x5555;
}

#endif
#endif
#endif

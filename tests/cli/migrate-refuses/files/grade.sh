#!/bin/sh
# reads expected.md

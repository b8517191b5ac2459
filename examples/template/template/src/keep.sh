#!/bin/sh
echo kept

#!/bin/sh
# Makes the films that the player is tested with: scenes that differ in how hard they are to decode, cut hard
# from one to the next, with B pictures and sound. What is there already is kept.
#
# usage: make-clips.sh FOLDER
set -eu
folder=${1:?usage: make-clips.sh FOLDER}
mkdir -p "$folder"

scenes='testsrc2=s=352x288:r=25:d=1[a];mandelbrot=s=352x288:r=25,trim=duration=1[b];
color=gray:s=352x288:r=25:d=1,noise=alls=40:allf=t[c];[a][b][c]concat=n=3,format=yuv420p[v]'

clip() { # FILE OPTIONS...
    file=$folder/$1
    shift
    [ -s "$file" ] && return
    ffmpeg -nostdin -loglevel error -y -filter_complex "$scenes" -f lavfi -i 'sine=frequency=440:sample_rate=48000:duration=3' \
        -map '[v]' -map 0:a -flags +bitexact -fflags +bitexact "$@" "$folder/unfinished-${file##*/}"
    mv "$folder/unfinished-${file##*/}" "$file"
}

# Slices of one row of macroblocks.
clip mpeg2.mpg -c:v mpeg2video -b:v 1500k -bf 2 -g 12 -c:a mp2
# Eight slices to a picture; some B pictures are references, and some are not.
clip h264.mkv -c:v libx264 -preset fast -b:v 800k -x264-params slices=8:bframes=3:b-pyramid=normal:keyint=50:threads=1 -c:a aac
# One slice to a picture.
clip h264-single.mp4 -c:v libx264 -preset fast -b:v 800k -x264-params slices=1:bframes=3:keyint=50:threads=1 -c:a aac
# A field at a time.
clip mpeg2-interlaced.mpg -c:v mpeg2video -b:v 1500k -bf 2 -g 12 -flags +bitexact+ildct+ilme -top 1 -c:a mp2
clip h264-interlaced.mkv -c:v libx264 -preset fast -b:v 800k -flags +ildct+ilme -x264-params tff=1:slices=4:bframes=3:threads=1 -c:a aac
clip mpeg4.mp4 -c:v mpeg4 -b:v 1000k -bf 2 -g 25 -c:a aac

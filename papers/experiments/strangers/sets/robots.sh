# shellcheck shell=bash disable=SC2154,SC2034
# Robots. programs.sh says what stands here.

#: ros-graph | ROS: a master, image_publisher of 30 Hz, image_proc, and a node of 200 Hz that hears them | ticks and frames in time, p99 of a frame | C++, CPython | robots
prepare_ros-graph() {
    need rosmaster ffmpeg pkg-config
    [ -x /usr/lib/image_proc/image_proc ] || { echo "skipped: no image_proc here"; exit 77; }
    build camera.png ffmpeg -v error -f lavfi -i testsrc=s=640x480 -frames:v 1 "$CACHE/camera.png"
    # shellcheck disable=SC2046 # words
    build robot g++ -O2 -I "$here" -o "$CACHE/robot" "$programs/robot.cpp" $(pkg-config --cflags --libs roscpp)
}
run_ros-graph() {
    export ROS_MASTER_URI=http://127.0.0.1:11399 ROS_IP=127.0.0.1 ROS_HOME=$WORK ROS_NAMESPACE=camera
    "$@" sh -c "rosmaster --core -p 11399 >$WORK/master 2>&1 & /usr/lib/image_publisher/image_publisher $CACHE/camera.png __name:=camera _publish_rate:=30 >$WORK/said 2>&1 &
        ROS_NAMESPACE=camera/camera /usr/lib/image_proc/image_proc >$WORK/proc 2>&1 & exec $CACHE/robot" 2>"$WORK/errors" | grep '^count\|^p99'
}

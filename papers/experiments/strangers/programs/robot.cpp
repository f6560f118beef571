// A node of 200 Hz that publishes and hears the rectified pictures of a camera of 30 Hz: ticks that
// are up to 5 ms late, and frames that are there within 33 ms of the camera's.
#include "beat.h"
#include <ros/ros.h>
#include <sensor_msgs/Image.h>
#include <std_msgs/Float64.h>

static double until;
static long in_time;

static void heard(const sensor_msgs::ImageConstPtr &image)
{
	double took = (ros::Time::now() - image->header.stamp).toSec() * 1e3;
	if (until == 0)
		until = ms() + seconds_to_run() * 1e3;
	in_time += took <= 1e3 / 30;
	tell(took);
}

int main(int argc, char **argv)
{
	ros::init(argc, argv, "robot");
	ros::NodeHandle node("/camera");
	ros::Subscriber in = node.subscribe("camera/image_rect_color", 1, heard);
	ros::Publisher out = node.advertise<std_msgs::Float64>("command", 1);
	for (double next = ms() + 5; until == 0 || next < until; next += 5) {
		sleep_until(next);
		in_time += until != 0 && ms() - next <= 5;
		std_msgs::Float64 command;
		work(0.2);
		out.publish(command);
		ros::spinOnce();
	}
	print_figures(in_time);
	_exit(0);
}
